//! A plain proxy: bytes in, bytes out, each connection to the next server.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

/// A proxy that runs until it is dropped.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    ended: AtomicBool,
    /// What is done to the bytes.
    fault: Mutex<Fault>,
    /// What is open: who copies holds it.
    connections: Mutex<Vec<Weak<TcpStream>>>,
}

/// What a proxy does to what comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Fault {
    /// It hands it on.
    #[default]
    None,
    /// It hands it on this much later.
    Delay(Duration),
    /// It hands on nothing, as a cable that was pulled: what was sent arrives when the fault is over.
    BlackHole,
    /// It hands on what the clients say, and nothing of what the server answers; when that is over, it closes what was open.
    MuteServer,
    /// It closes what is open, and every connection at once.
    Reset,
}

impl Proxy {
    pub(crate) fn start(servers: Vec<SocketAddr>) -> Self {
        Self::at(0, servers)
    }

    /// The same on a port that others know.
    pub(crate) fn at(port: u16, servers: Vec<SocketAddr>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let shared = Arc::<Shared>::default();
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            let next = AtomicUsize::new(0);
            for client in listener.incoming().flatten() {
                if serving.ended.load(Ordering::SeqCst) {
                    return;
                }
                let server = servers[next.fetch_add(1, Ordering::SeqCst) % servers.len()];
                serving.join(client, server);
            }
        });
        Self { address, shared }
    }

    /// From now on this is done to what comes.
    pub(crate) fn set(&self, fault: Fault) {
        let before =
            std::mem::replace(&mut *self.shared.fault.lock().unwrap_or_else(PoisonError::into_inner), fault);
        if fault == Fault::Reset || before == Fault::MuteServer {
            self.shared.close();
        }
    }
}

impl Shared {
    fn fault(&self) -> Fault {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        for connection in self.connections.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            if let Some(connection) = connection.upgrade() {
                let _ = connection.shutdown(Shutdown::Both);
            }
        }
    }

    fn join(self: &Arc<Self>, client: TcpStream, server: SocketAddr) {
        if self.fault() == Fault::Reset {
            return;
        }
        let Some(server) = connect(server) else { return };
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let (client, server) = (Arc::new(client), Arc::new(server));
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        connections.retain(|connection| connection.strong_count() > 0);
        connections.extend([Arc::downgrade(&client), Arc::downgrade(&server)]);
        drop(connections);
        for (from, to, answers) in [(Arc::clone(&client), Arc::clone(&server), false), (server, client, true)]
        {
            let shared = Arc::clone(self);
            thread::spawn(move || shared.copy(&from, &to, answers));
        }
    }

    fn copy(&self, mut from: &TcpStream, mut to: &TcpStream, answers: bool) {
        let mut bytes = [0; 16 * 1024];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            match self.fault() {
                Fault::None => {}
                Fault::Delay(delay) => thread::sleep(delay),
                Fault::BlackHole => {
                    while self.fault() == Fault::BlackHole && !self.ended.load(Ordering::SeqCst) {
                        thread::sleep(Duration::from_millis(2));
                    }
                    if self.fault() == Fault::Reset {
                        break;
                    }
                }
                Fault::MuteServer if answers => continue,
                Fault::MuteServer => {}
                Fault::Reset => break,
            }
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
        if self.fault() == Fault::Reset {
            let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
        }
    }
}

/// Connects; waits where thousands of connections have used up the machine's ports for a while.
fn connect(server: SocketAddr) -> Option<TcpStream> {
    for _ in 0..100 {
        match TcpStream::connect(server) {
            Err(error) if error.kind() == std::io::ErrorKind::AddrNotAvailable => {
                thread::sleep(Duration::from_millis(50));
            }
            done => return done.ok(),
        }
    }
    None
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        self.shared.close();
        // So that the thread that accepts looks up.
        let _ = TcpStream::connect(self.address);
    }
}
