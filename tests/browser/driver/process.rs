//! A program that a test starts, with a folder of its own to live in.

use std::{
    fs::File,
    net::{TcpListener, TcpStream},
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use crate::scratch::Scratch;

/// A running program. What it started in its process group ends with it.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    home: Scratch,
    pub(crate) port: u16,
}

impl Process {
    /// Starts what `command` makes of an empty folder and a free port, and waits until it listens there.
    pub(crate) fn start(command: impl FnOnce(&Scratch, u16) -> Command) -> Result<Self, String> {
        let (home, port) = (Scratch::new(), free_port());
        let mut command = command(&home, port);
        for variable in
            ["HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "TMPDIR"]
        {
            let folder = home.file(variable);
            std::fs::create_dir_all(&folder).expect("the folder can be written");
            command.env(variable, folder);
        }
        // Nothing that belongs to a desktop, of which there is none.
        command.env("LANG", "C.UTF-8").env("GIO_USE_VFS", "local").env("GSETTINGS_BACKEND", "memory");
        command.env("NO_AT_BRIDGE", "1").env("DBUS_SESSION_BUS_ADDRESS", "disabled:");
        let log = File::create(home.file("log")).expect("the log can be written");
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a second handle")).stderr(log);
        let child = command.process_group(0).spawn().map_err(|error| format!("{command:?}: {error}"))?;
        let mut process = Self { child, home, port };
        let listens = || TcpStream::connect(("127.0.0.1", port)).is_ok();
        if poll(|| (listens() || process.has_ended()).then_some(())).is_some() && !process.has_ended() {
            return Ok(process);
        }
        Err(process.log())
    }

    /// What it has printed.
    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.home.file("log")).unwrap_or_default()).into_owned()
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.child.wait();
    }
}

/// Where a program is that may be installed, in one of the folders of PATH.
pub(crate) fn installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Asks until there is an answer, for a minute and longer where asking takes time.
pub(crate) fn poll<T>(mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    for _ in 0..1200 {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    None
}

/// Nobody else takes ports in this namespace.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it has an address").port()
}
