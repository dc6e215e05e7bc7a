//! A connection that comes back: to one server, or to the primary that sentinels name.

use std::{
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use redis::{
    AsyncConnectionConfig, Cmd, ErrorKind, PushInfo, PushKind, RedisError, RedisResult, ServerErrorKind,
    Value,
    aio::{ConnectionLike as _, MultiplexedConnection},
};
use tokio::sync::{Notify, watch};

use super::target::{ANSWER, CONNECT, Target, client, sentinel_client};

/// What hears the messages of the channel.
pub(super) type Listener = Arc<dyn Fn(Heard) + Send + Sync>;

/// A channel to listen to, and who does.
pub(super) type Channel = (String, Listener);

/// Something heard.
pub(super) enum Heard {
    /// A message of the channel.
    Message(Vec<u8>),
    /// The connection came about again; messages may have been missed.
    Again,
}

/// A connection shared by everything a store does.
pub(super) struct Link {
    target: Target,
    channel: Option<Channel>,
    state: watch::Sender<State>,
    broken: Notify,
    attempts: AtomicUsize,
}

#[derive(Clone)]
enum State {
    Up(u64, MultiplexedConnection),
    /// It is being made, and nothing is wrong yet.
    Connecting(u64),
    /// The last attempt failed: asking is in vain until one succeeds.
    Down(u64, Arc<str>),
}

impl Link {
    /// Connects, and from then on keeps the connection alive as long as the link is.
    pub(super) async fn open(target: Target, channel: Option<Channel>) -> RedisResult<Arc<Self>> {
        let link = Self::new(target, channel);
        let connection = link.connect().await?;
        link.state.send_replace(State::Up(1, connection));
        Ok(link.kept())
    }

    /// A link that connects by itself, as soon as somebody answers there.
    pub(super) fn start(target: Target, channel: Option<Channel>) -> Arc<Self> {
        let link = Self::new(target, channel);
        link.broken.notify_one();
        link.kept()
    }

    fn new(target: Target, channel: Option<Channel>) -> Self {
        let state = watch::Sender::new(State::Connecting(0));
        Self { target, channel, state, broken: Notify::new(), attempts: AtomicUsize::new(0) }
    }

    fn kept(self) -> Arc<Self> {
        let link = Arc::new(self);
        tokio::spawn(keep(Arc::downgrade(&link)));
        link
    }

    /// Sends a command, once more if the connection was lost over it: everything a store sends may be done twice.
    pub(super) async fn send(&self, command: &Cmd) -> RedisResult<Value> {
        let (number, connection) = self.connection().await?;
        match send(connection, command).await {
            Err(error) if is_lost(&error) => {
                self.reset(number);
                let (_, connection) = self.connection().await?;
                send(connection, command).await
            }
            done => done,
        }
    }

    /// Sends a command about a key that is on its way here from another node of a cluster.
    pub(super) async fn ask(&self, command: &Cmd) -> RedisResult<Value> {
        let (_, mut connection) = self.connection().await?;
        let mut asking = redis::pipe();
        asking.cmd("ASKING").ignore().add_command(command.clone());
        let answers: Vec<Value> = asking.query_async(&mut connection).await?;
        answers.into_iter().next().unwrap_or_default().extract_error()
    }

    /// The connection, as soon as there is one; an error at once where making one has just failed.
    async fn connection(&self) -> RedisResult<(u64, MultiplexedConnection)> {
        let mut state = self.state.subscribe();
        loop {
            match &*state.borrow_and_update() {
                State::Up(number, connection) => return Ok((*number, connection.clone())),
                State::Down(_, cause) => {
                    return Err((ErrorKind::Io, "not connected", cause.to_string()).into());
                }
                State::Connecting(_) => {}
            }
            if state.changed().await.is_err() {
                return Err((ErrorKind::Io, "the store is closed").into());
            }
        }
    }

    /// Gives a connection up, unless somebody did already.
    fn reset(&self, number: u64) {
        let was_up = self.state.send_if_modified(|state| {
            let is_it = matches!(state, State::Up(up, _) if *up == number);
            if is_it {
                *state = State::Connecting(number);
            }
            is_it
        });
        if was_up {
            self.broken.notify_one();
        }
    }

    async fn connect(&self) -> RedisResult<MultiplexedConnection> {
        tokio::time::timeout(CONNECT, self.connect_unbounded())
            .await
            .unwrap_or_else(|_| Err((ErrorKind::Io, "no connection within two seconds").into()))
    }

    async fn connect_unbounded(&self) -> RedisResult<MultiplexedConnection> {
        let listener = self.channel.as_ref().map(|(_, listener)| Arc::clone(listener));
        let hear = move |push: PushInfo| -> Result<(), ()> {
            if let (Some(listener), PushKind::Message, Some(Value::BulkString(text))) =
                (&listener, push.kind, push.data.into_iter().nth(1))
            {
                listener(Heard::Message(text));
            }
            Ok(())
        };
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT))
            .set_response_timeout(Some(ANSWER))
            .set_push_sender(Arc::new(hear));
        let mut connection = match &self.target {
            Target::One(info) => client(info)?.get_multiplexed_async_connection_with_config(&config).await?,
            Target::Sentinel { sentinels, service, database } => {
                // Another one first each time: the first that hangs must not use up the time for ever.
                let mut sentinels = sentinels.clone();
                let first = self.attempts.fetch_add(1, Ordering::Relaxed) % sentinels.len().max(1);
                sentinels.rotate_left(first);
                let mut asked = sentinel_client(&sentinels, service, *database)?;
                asked.get_async_connection_with_config(&config).await?
            }
            Target::Cluster(_) => {
                return Err((ErrorKind::InvalidClientConfig, "a cluster is many links").into());
            }
        };
        if let Some((channel, _)) = &self.channel {
            connection.subscribe(channel).await?;
        }
        Ok(connection)
    }
}

async fn send(mut connection: MultiplexedConnection, command: &Cmd) -> RedisResult<Value> {
    connection.req_packed_command(command).await?.extract_error()
}

/// Whether the connection is of no use any more: it is gone, it does not answer, or it leads to a server that was the
/// primary once.
pub(super) fn is_lost(error: &RedisError) -> bool {
    error.is_io_error()
        || error.is_connection_dropped()
        || error.is_timeout()
        // Redis 6 wraps what a script met with in an error of its own.
        || error.to_string().contains("READONLY")
        || matches!(error.kind(), ErrorKind::Server(ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown))
}

/// Asks every second whether the connection lives, and makes a new one when it does not.
async fn keep(link: Weak<Link>) {
    loop {
        let Some(strong) = link.upgrade() else { return };
        let _ = tokio::time::timeout(HEARTBEAT, strong.broken.notified()).await;
        let state = strong.state.borrow().clone();
        let number = match state {
            State::Up(number, connection) => {
                let alive = tokio::time::timeout(HEARTBEAT, send(connection, &redis::cmd("PING"))).await;
                match alive {
                    Ok(Ok(_)) => continue,
                    _ => number,
                }
            }
            State::Connecting(number) | State::Down(number, _) => number,
        };
        strong.reset(number);
        match strong.connect().await {
            Ok(connection) => {
                strong.state.send_replace(State::Up(number + 1, connection));
                if let Some((_, listener)) = &strong.channel {
                    listener(Heard::Again);
                }
            }
            Err(error) => {
                strong.state.send_replace(State::Down(number, error.to_string().into()));
                strong.broken.notify_one();
                drop(strong);
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Link")
    }
}

const HEARTBEAT: Duration = Duration::from_secs(1);

/// Pause after an attempt that failed: so soon after the server is back everything works again.
const RETRY: Duration = Duration::from_millis(100);
