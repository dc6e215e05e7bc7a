//! The floors of the house: a file imports only from below, no folder holds a circle, outside crates stay on the floors
//! that may know them, files stay short. Reads the sources with `syn`, so inline paths count as imports do.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use syn::visit::Visit;

/// The floors. `lib.rs` stands outside: it holds the map and the re-exports.
const FLOORS: [(&str, u8); 11] = [
    ("base64url", 0),
    ("clock", 1),
    ("id", 1),
    ("crypto", 2),
    ("cookie", 3),
    ("dbsc", 4),
    ("session", 5),
    ("events", 6),
    ("store", 7),
    ("middleware", 8),
    ("extract", 9),
];

/// Which rooms may name an outside crate. What is not listed may be named nowhere.
const CRATES: [(&str, &[&str]); 25] = [
    ("aes_gcm", &["crypto"]),
    ("getrandom", &["crypto"]),
    ("hkdf", &["crypto"]),
    ("p256", &["crypto"]),
    ("sha2", &["crypto"]),
    ("siphasher", &["crypto"]),
    ("base64_simd", &["base64url"]),
    ("psl", &["cookie"]),
    ("memchr", &["crypto", "cookie"]),
    ("subtle", &["crypto", "session", "store"]),
    ("zeroize", &["id", "crypto", "cookie", "dbsc", "session", "store", "middleware"]),
    ("serde", &["id", "dbsc", "session", "extract"]),
    ("serde_json", &["dbsc", "session", "store", "middleware", "extract"]),
    ("time", &["crypto", "cookie", "store", "middleware", "extract"]),
    ("tracing", &["events", "store", "middleware", "extract"]),
    ("async_trait", &["store"]),
    ("ipnet", &["middleware"]),
    ("redis", &["store"]),
    ("rustls", &["store"]),
    ("sqlx", &["store"]),
    ("tokio", &["store", "middleware"]),
    ("tower_sessions_core", &["lib", "store", "middleware", "extract"]),
    ("http", &["store", "middleware", "extract"]),
    ("axum_core", &["extract"]),
    ("form_urlencoded", &["extract"]),
];

/// What a tower layer is made of.
const LAYER_CRATES: [&str; 3] = ["tower_layer", "tower_service", "pin_project_lite"];

/// No file is longer than this; most are far shorter.
const LONGEST_FILE: usize = 350;

/// One source file: its module path below the crate, and the paths it names.
struct Source {
    module: Vec<String>,
    lines: usize,
    paths: BTreeSet<Vec<String>>,
}

impl Source {
    fn room(&self) -> &str {
        self.module.first().map_or("lib", String::as_str)
    }

    /// The module paths it names inside the crate, made absolute.
    fn inner_paths(&self) -> impl Iterator<Item = Vec<String>> {
        self.paths.iter().filter_map(|path| {
            let mut at = self.module.clone();
            let mut rest = path.as_slice();
            match rest.first().map(String::as_str) {
                Some("crate") => at.clear(),
                Some("self") => {}
                Some("super") => {
                    while rest.first().is_some_and(|part| part == "super") {
                        at.pop()?;
                        rest = &rest[1..];
                    }
                    return Some([at.as_slice(), rest].concat());
                }
                _ => return None,
            }
            Some([at.as_slice(), &rest[1..]].concat())
        })
    }
}

/// Collects every path a file names, in imports and inline.
#[derive(Default)]
struct Paths(BTreeSet<Vec<String>>);

impl Paths {
    fn use_tree(&mut self, before: &[String], tree: &syn::UseTree) {
        let joined = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.use_tree(&joined(&path.ident), &path.tree),
            syn::UseTree::Name(name) => drop(self.0.insert(joined(&name.ident))),
            syn::UseTree::Rename(name) => drop(self.0.insert(joined(&name.ident))),
            syn::UseTree::Glob(_) => drop(self.0.insert(before.to_vec())),
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.use_tree(before, tree)),
        }
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.use_tree(&[], &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 || path.leading_colon.is_some() {
            self.0.insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        syn::visit::visit_path(self, path);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        // Tests inside a file may look around as they like.
        let is_test = item.attrs.iter().any(|attribute| {
            attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test")
        });
        if !is_test {
            syn::visit::visit_item_mod(self, item);
        }
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        // A macro's arguments are tokens; a crate path in them is found as `crate :: …`.
        let text = item.tokens.to_string();
        for part in text.split("crate ::").skip(1) {
            let path = part.split("::").map(|word| word.trim().to_owned());
            let words = path.map_while(|word| {
                let name: String = word.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                (!name.is_empty()).then_some(name)
            });
            self.0.insert(std::iter::once("crate".to_owned()).chain(words).collect());
        }
        syn::visit::visit_macro(self, item);
    }
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    collect(&root, &mut files);
    assert!(files.len() > 40, "only {} sources found", files.len());
    files.into_iter().map(|file| read(&root, &file)).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

fn read(root: &Path, file: &Path) -> Source {
    let text = fs::read_to_string(file).unwrap();
    let mut paths = Paths::default();
    paths.visit_file(&syn::parse_file(&text).unwrap());
    let relative = file.strip_prefix(root).unwrap().with_extension("");
    let mut module: Vec<String> =
        relative.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    if module.last().is_some_and(|last| last == "mod" || last == "lib") {
        module.pop();
    }
    Source { module, lines: text.lines().count(), paths: paths.0 }
}

fn floor(room: &str) -> Option<u8> {
    FLOORS.iter().find(|(name, _)| *name == room).map(|(_, floor)| *floor)
}

#[test]
fn imports_point_only_downwards() {
    let mut faults = Vec::new();
    for source in sources().iter().filter(|source| source.room() != "lib") {
        let own = floor(source.room()).unwrap_or_else(|| panic!("{} has no floor", source.room()));
        for path in source.inner_paths() {
            let Some(room) = path.first() else { continue };
            match floor(room) {
                Some(theirs) if theirs < own || room == source.room() => {}
                Some(_) => faults.push(format!("{:?} names {path:?}, which is not below it", source.module)),
                None => faults.push(format!("{:?} imports {path:?} through the crate root", source.module)),
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

/// The files of one folder form no circle. A `mod.rs` stands for its folder and is left out where it only re-exports.
#[test]
fn no_folder_holds_a_circle() {
    let sources = sources();
    let modules: BTreeSet<Vec<String>> = sources.iter().map(|source| source.module.clone()).collect();
    let mut edges: BTreeMap<Vec<String>, BTreeSet<Vec<String>>> = BTreeMap::new();
    for source in &sources {
        for path in source.inner_paths() {
            // The longest beginning of the path that is a file.
            let file = (1..=path.len()).rev().map(|n| path[..n].to_vec()).find(|path| modules.contains(path));
            let Some(file) = file else { continue };
            // A file may name its own folder's `mod.rs` types; that file names its children to re-export them.
            if file != source.module && !source.module.starts_with(&file) && !file.starts_with(&source.module)
            {
                edges.entry(source.module.clone()).or_default().insert(file);
            }
        }
    }
    for start in edges.keys() {
        let mut seen = BTreeSet::new();
        let mut open: Vec<_> = edges[start].iter().cloned().collect();
        while let Some(next) = open.pop() {
            assert_ne!(next, *start, "{start:?} is in a circle of imports: {seen:?}");
            if seen.insert(next.clone()) {
                open.extend(edges.get(&next).into_iter().flatten().cloned());
            }
        }
    }
}

#[test]
fn outside_crates_stay_on_their_floors() {
    let known = ["std", "core", "alloc", "crate", "self", "super", "Self"];
    let mut faults = Vec::new();
    for source in sources() {
        for path in &source.paths {
            let name = path[0].as_str();
            if known.contains(&name) || !is_crate(name) {
                continue;
            }
            let rooms = CRATES.iter().find(|(listed, _)| *listed == name).map(|(_, rooms)| *rooms);
            let allowed = match rooms {
                Some(rooms) => rooms.contains(&source.room()),
                None => LAYER_CRATES.contains(&name) && ["middleware", "extract"].contains(&source.room()),
            };
            if !allowed {
                faults.push(format!("{:?} names {name}", source.module));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

/// The dependencies of the crate, as `Cargo.toml` lists them.
fn is_crate(name: &str) -> bool {
    let manifest = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).unwrap();
    let dependencies = manifest.split("[dependencies]").nth(1).unwrap().split("\n[").next().unwrap();
    let mut names = dependencies.lines().filter_map(|line| line.split([' ', '=']).next());
    names.any(|listed| listed.replace('-', "_") == name)
}

#[test]
fn every_dependency_has_its_floors_stated() {
    for (name, rooms) in CRATES {
        assert!(is_crate(name), "{name} is listed here and is no dependency");
        assert!(rooms.iter().all(|room| *room == "lib" || floor(room).is_some()), "{name}: {rooms:?}");
    }
    let used: BTreeSet<String> =
        sources().iter().flat_map(|source| &source.paths).map(|path| path[0].clone()).collect();
    for (name, _) in CRATES {
        assert!(used.contains(name), "{name} is a dependency that no source names");
    }
}

#[test]
fn files_stay_short() {
    for source in sources() {
        assert!(source.lines <= LONGEST_FILE, "{:?} has {} lines", source.module, source.lines);
    }
}

/// What must stand in one file only: reading the time, drawing random bytes, `unsafe`.
#[test]
fn the_time_and_randomness_have_one_door_each() {
    for source in sources() {
        let names = |a: &str, b: &str| {
            source.paths.iter().any(|path| path.windows(2).any(|pair| pair[0] == a && pair[1] == b))
        };
        let own = source.module.join("/");
        for (a, b, door) in [
            ("SystemTime", "now", "clock"),
            ("Instant", "now", "clock"),
            ("OffsetDateTime", "now_utc", "clock"),
            ("UtcDateTime", "now", "clock"),
            ("getrandom", "fill", "crypto/random"),
        ] {
            assert!(own == door || !names(a, b), "{own} calls {a}::{b}; only {door} may");
        }
    }
}

/// From any line of SECURITY.md one gets to a test: each name in backticks after its kind is a test function. And back:
/// every test of an attack stands in the row of that attack, and every attack of the list has a row.
#[test]
fn security_md_and_the_tests_name_each_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |folder: &str| -> String {
        let mut files = Vec::new();
        collect(&root.join(folder), &mut files);
        files.iter().map(|file| fs::read_to_string(file).unwrap()).collect()
    };
    let code = read("src") + &read("tests");
    let page = fs::read_to_string(root.join("SECURITY.md")).unwrap();
    let table = page.split("|---|---|---|").nth(1).unwrap();
    let rows: Vec<Vec<&str>> =
        table.lines().filter(|line| line.starts_with('|')).map(|line| line.split('|').collect()).collect();
    let names = |row: &[&str]| -> Vec<String> {
        row[3]
            .split('`')
            .skip(1)
            .step_by(2)
            .map(|name| name.rsplit("::").next().unwrap().to_owned())
            .collect()
    };
    for name in rows.iter().flat_map(|row| names(row)) {
        assert!(code.contains(&format!("fn {name}(")), "{name} is named in SECURITY.md and is no test");
    }
    let ids: Vec<&str> = rows.iter().map(|row| row[1].trim()).collect();
    let all: Vec<String> = (1..=80).map(|number| format!("A{number:02}")).collect();
    assert_eq!(ids, all, "one row for each attack, in order");
    for test in read("tests/attacks").split("fn ").filter_map(|rest| rest.split('(').next()) {
        let attacks = test.split('_').take_while(|part| {
            part.len() == 3
                && part.strip_prefix('a').is_some_and(|id| id.bytes().all(|byte| byte.is_ascii_digit()))
        });
        for id in attacks {
            let row = rows.iter().find(|row| row[1].trim().eq_ignore_ascii_case(id)).unwrap();
            assert!(names(row).contains(&test.to_owned()), "{test} is missing in the row of {id}");
        }
    }
}

/// The same of the table of what users elsewhere suffer from.
#[test]
fn the_stories_readme_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    collect(&root.join("tests"), &mut files);
    let code: String = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let page = fs::read_to_string(root.join("tests/stories/README.md")).unwrap();
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| ")).collect();
    let mut named = 0;
    for row in rows {
        let shown_by = row.split('|').nth(3).unwrap().trim();
        for list in shown_by.split("; ").filter(|list| !list.starts_with("none: ")) {
            for name in list.split('`').skip(1).step_by(2) {
                let function = name.rsplit("::").next().unwrap();
                assert!(code.contains(&format!("fn {function}(")), "{name} is named and is no test");
                named += 1;
            }
        }
    }
    assert!(named > 100, "only {named} tests are named");
}

/// A check leaves a value behind that the next step demands. Each is made in its own file alone, and given out by one
/// caller: whoever adds another says here why.
#[test]
fn witnesses_are_made_where_the_check_is() {
    const MAKERS: [(&str, &[&str]); 6] = [
        ("Unsealed(", &["cookie/sealed.rs"]),
        ("Opened::from_seal(", &["middleware/request.rs"]),
        ("Admitted(", &["session/verdict.rs"]),
        ("Admitted::issued(", &["store/registry/begin.rs"]),
        ("VerifiedRenewal {", &["session/renewal_token.rs"]),
        ("Attached::new(", &["middleware/question.rs", "middleware/request.rs"]),
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    collect(&root, &mut files);
    for (maker, allowed) in MAKERS {
        let mut made_in = BTreeSet::new();
        for file in &files {
            let text = fs::read_to_string(file).unwrap();
            let is_made =
                text.lines().map(str::trim_start).filter(|line| !line.starts_with("//")).any(|line| {
                    line.match_indices(maker).any(|(at, _)| {
                        // Patterns, variants of other types and longer names are no making.
                        let before = line.get(..at).unwrap_or_default();
                        !before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':')
                            && !["struct ", "impl ", "for ", "-> "].iter().any(|word| before.ends_with(word))
                    })
                });
            if is_made {
                made_in.insert(file.strip_prefix(&root).unwrap().to_string_lossy().into_owned());
            }
        }
        let allowed: BTreeSet<String> = allowed.iter().map(|file| (*file).to_owned()).collect();
        assert_eq!(made_in, allowed, "`{maker}`");
    }
}
