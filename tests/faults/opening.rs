//! What cannot be opened says so at once, with the remedy; what is dangerous is a warning.

use std::{path::PathBuf, process::Command};

use crate::{
    lab::{Flags, Lab},
    scratch::Scratch,
    servers::{Postgres, Redis, is_there},
};

fn refusal(store: &str) -> String {
    let flags = Flags { store: store.into(), ..Flags::memory() };
    Lab::refusal(&flags).unwrap_or_else(|| panic!("{store} was opened"))
}

fn assert_says(said: &str, words: &[&str]) {
    for word in words.iter().chain(&["Remedy: "]) {
        assert!(said.contains(word), "{word}: {said}");
    }
    assert!(!said.contains("hunter2"), "a password: {said}");
}

#[test]
fn a_url_that_is_none() {
    for url in [
        "redis://",
        "redis+sentinel://127.0.0.1:1",
        "redis+cluster://127.0.0.1:1/2",
        "redis+mesh://127.0.0.1:1",
        "redis://u:hunter2@:x",
    ] {
        assert_says(&refusal(url), &["is no URL of a Redis", "redis+sentinel://"]);
    }
    assert_says(
        &refusal("postgres://u:hunter2@127.0.0.1:x/y"),
        &["no URL of a PostgreSQL", "postgres://USER:PASSWORD@"],
    );
}

#[test]
fn nobody_answers_there() {
    for url in [
        "redis://u:hunter2@127.0.0.1:1",
        "redis+sentinel://u:hunter2@127.0.0.1:1/main",
        "redis+cluster://u:hunter2@127.0.0.1:1",
    ] {
        assert_says(&refusal(url), &["127.0.0.1:1", "check the address"]);
    }
    assert_says(&refusal("postgres://u:hunter2@127.0.0.1:1/x"), &["127.0.0.1:1/x", "check the address"]);
}

#[test]
fn a_redis_that_refuses() {
    if !is_there("redis-server") {
        return;
    }
    let redis = Redis::start(&["--requirepass", "secret"]);
    for url in [redis.url(), format!("redis://:hunter2@127.0.0.1:{}", redis.port)] {
        assert_says(&refusal(&url), &["refuses the user or the password", "redis://USER:PASSWORD@"]);
    }
    redis.cli(&[
        "-a", "secret", "acl", "setuser", "poor", "on", ">secret", "~*", "&*", "+ping", "+hello", "+client",
    ]);
    let poor = format!("redis://poor:secret@127.0.0.1:{}", redis.port);
    assert_says(&refusal(&poor), &["may not do what sessions need", "+@all -@dangerous"]);
}

/// The rights that the error names are enough.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_user_with_no_more_rights_than_named() {
    if !is_there("redis-server") {
        return;
    }
    let redis = Redis::start(&[]);
    let rights = ["on", ">secret", "~lab:*", "&lab:*", "+@all", "-@dangerous", "+info"];
    redis.cli(&[&["acl", "setuser", "shop"], rights.as_slice()].concat());
    let flags = Flags { store: format!("redis://shop:secret@127.0.0.1:{}", redis.port), ..Flags::memory() };
    let lab = Lab::start(&flags);
    let mut alice = lab.signed_in("alice").await;
    lab.pass(crate::lab::FRESH).await;
    assert_eq!(alice.who().await.as_deref(), Some("alice"));
    assert_eq!(alice.visit("POST", "/logout-everywhere", "").await.status, 204);
}

#[test]
fn a_redis_of_another_version_and_one_that_evicts() {
    if !is_there("redis-server") {
        return;
    }
    let redis = Redis::start(&["--maxmemory", "50mb", "--maxmemory-policy", "allkeys-lru"]);
    let flags = Flags { store: redis.url(), ..Flags::memory() };
    let lab = Lab::start(&flags);
    assert!(lab.log().contains("maxmemory-policy to noeviction"), "{}", lab.log());
    redis.cli(&["hset", "lab:{00}:meta", "version", "9"]);
    assert_says(&refusal(&redis.url()), &["by a later version", "another key prefix"]);
}

#[test]
fn another_index_secret() {
    if !is_there("redis-server") {
        return;
    }
    let redis = Redis::start(&[]);
    let flags = Flags { store: redis.url(), keys: Some(Lab::new_keys()), ..Flags::memory() };
    let lab = Lab::start(&flags);
    tokio::runtime::Runtime::new().unwrap().block_on(lab.signed_in("alice"));
    let said = Lab::refusal(&Flags { keys: Some(Lab::new_keys()), ..flags }).unwrap();
    assert_says(&said, &["another index secret"]);
}

#[test]
fn a_database_that_refuses() {
    let Some(postgres) = Postgres::start() else { return };
    let at = |database: &str, user: &str| format!("postgres://{user}@127.0.0.1:{}/{database}", postgres.port);
    assert_says(&refusal(&at("nowhere", "portcullis")), &["createdb"]);
    assert_says(&refusal(&at("portcullis", "stranger")), &["refuses the user or the password"]);
    postgres.sql("CREATE ROLE poor LOGIN");
    assert_says(
        &refusal(&at("portcullis", "poor")),
        &["may not make or use tables", "CREATE SCHEMA sessions AUTHORIZATION"],
    );
    // A table of another version.
    let flags = Flags { store: postgres.url(), ..Flags::memory() };
    Lab::start(&flags).stop();
    postgres.sql("UPDATE lab.portcullis_meta SET value = int8send(9) WHERE name = 'version'");
    assert_says(&refusal(&postgres.url()), &["made by another version", "another schema"]);
}

/// Over TLS, against an authority that the system is told to trust; against any other it is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_tls() {
    if !is_there("redis-server") || !is_there("openssl") {
        return;
    }
    let scratch = Scratch::new();
    let authority = certificates(&scratch);
    let file = |name: &str| scratch.file(name).display().to_string();
    let port = crate::servers::free_port().to_string();
    let redis = Redis::start(&[
        "--tls-port",
        &port,
        "--tls-cert-file",
        &file("server.pem"),
        "--tls-key-file",
        &file("server.key"),
        "--tls-ca-cert-file",
        &file("authority.pem"),
        "--tls-auth-clients",
        "no",
    ]);
    assert_eq!(redis.cli(&["ping"]).trim(), "PONG");
    let url = format!("rediss://127.0.0.1:{port}");
    let trusting =
        Flags { environment: vec![("SSL_CERT_FILE", authority)], store: url.clone(), ..Flags::memory() };
    let lab = Lab::start(&trusting);
    let mut alice = lab.signed_in("alice").await;
    lab.pass(crate::lab::FRESH).await;
    assert_eq!(alice.who().await.as_deref(), Some("alice"));
    // Plain words to a port that speaks TLS, and an authority that nobody trusts.
    assert_says(&refusal(&url.replace("rediss", "redis")), &["redis:// against rediss://"]);
    assert_says(&refusal(&url), &["cannot be used"]);
}

/// An authority of the test's own and a certificate of 127.0.0.1. The authority's file.
fn certificates(scratch: &Scratch) -> PathBuf {
    let run = |arguments: &[&str]| {
        let output = Command::new("openssl").args(arguments).current_dir(scratch.file("")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    let made = [
        "req",
        "-x509",
        "-days",
        "2",
        "-subj",
        "/CN=authority",
        "-keyout",
        "authority.key",
        "-out",
        "authority.pem",
    ];
    run(&[made.as_slice(), &key].concat());
    let asked = ["req", "-subj", "/CN=server", "-keyout", "server.key", "-out", "server.csr"];
    run(&[asked.as_slice(), &key].concat());
    std::fs::write(scratch.file("names"), "subjectAltName=IP:127.0.0.1,DNS:localhost\n").unwrap();
    run(&[
        "x509",
        "-req",
        "-in",
        "server.csr",
        "-CA",
        "authority.pem",
        "-CAkey",
        "authority.key",
        "-CAcreateserial",
        "-days",
        "2",
        "-extfile",
        "names",
        "-out",
        "server.pem",
    ]);
    scratch.file("authority.pem")
}

/// Many instances that start at once make the tables once.
#[test]
fn instances_that_start_at_once() {
    let Some(postgres) = Postgres::start() else { return };
    let flags = Flags { store: postgres.url(), keys: Some(Lab::new_keys()), ..Flags::memory() };
    let labs: Vec<_> = (0..6)
        .map(|_| {
            let flags = flags.clone();
            std::thread::spawn(move || Lab::start(&flags))
        })
        .collect();
    for lab in labs {
        assert!(!lab.join().unwrap().log().contains("ERROR"));
    }
}
