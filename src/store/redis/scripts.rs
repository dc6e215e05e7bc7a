//! The scripts: each runs on the server as one atomic step over the keys of one partition.

use redis::{Cmd, ErrorKind, FromRedisValue, RedisResult, Script, ServerErrorKind, ToRedisArgs, Value};

use super::servers::Servers;
use crate::clock::{Clock, Timestamp};

/// One script.
pub(super) struct Lua {
    text: String,
    hash: String,
}

impl Lua {
    fn new(body: &str) -> Self {
        let text = [include_str!("scripts/common.lua"), body].concat();
        Self { hash: Script::new(&text).get_hash().into(), text }
    }
}

/// All of them.
pub(super) struct Scripts {
    pub(super) before: Lua,
    pub(super) claim: Lua,
    pub(super) drop: Lua,
    pub(super) end: Lua,
    pub(super) enter: Lua,
    pub(super) list: Lua,
    pub(super) publish: Lua,
    pub(super) purge: Lua,
    pub(super) put: Lua,
    pub(super) raise: Lua,
    pub(super) read: Lua,
    pub(super) window: Lua,
    pub(super) write: Lua,
}

impl Scripts {
    pub(super) fn new() -> Self {
        Self {
            before: Lua::new(include_str!("scripts/before.lua")),
            claim: Lua::new(include_str!("scripts/claim.lua")),
            drop: Lua::new(include_str!("scripts/drop.lua")),
            end: Lua::new(include_str!("scripts/end.lua")),
            enter: Lua::new(include_str!("scripts/enter.lua")),
            list: Lua::new(include_str!("scripts/list.lua")),
            publish: Lua::new(include_str!("scripts/publish.lua")),
            purge: Lua::new(include_str!("scripts/purge.lua")),
            put: Lua::new(include_str!("scripts/put.lua")),
            raise: Lua::new(include_str!("scripts/raise.lua")),
            read: Lua::new(include_str!("scripts/read.lua")),
            window: Lua::new(include_str!("scripts/window.lua")),
            write: Lua::new(include_str!("scripts/write.lua")),
        }
    }
}

/// A call of a script, being put together.
pub(super) struct Call<'a> {
    script: &'a Lua,
    partition: u8,
    keys: usize,
    arguments: Cmd,
}

impl<'a> Call<'a> {
    /// A call over `keys`, all of this partition. The first argument of every script is the instant of a test's clock.
    pub(super) fn new<const N: usize>(
        script: &'a Lua,
        partition: u8,
        keys: [String; N],
        clock: Option<&dyn Clock>,
    ) -> Self {
        let mut arguments = Cmd::new();
        for key in keys {
            arguments.arg(key);
        }
        arguments.arg(clock.map(|clock| clock.now().as_millis().to_string()).unwrap_or_default());
        Self { script, partition, keys: N, arguments }
    }

    pub(super) fn arg(mut self, argument: impl ToRedisArgs) -> Self {
        self.arguments.arg(argument);
        self
    }

    /// Runs it by its hash; where the server does not know it (it is new, or was restarted), by its text.
    pub(super) async fn run<T: FromRedisValue>(&self, servers: &Servers) -> RedisResult<T> {
        let by_hash = self.command("EVALSHA", &self.script.hash);
        let value = match servers.send(self.partition, &by_hash).await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                servers.send(self.partition, &self.command("EVAL", &self.script.text)).await?
            }
            done => done?,
        };
        Ok(T::from_redis_value(value)?)
    }

    fn command(&self, verb: &str, script: &str) -> Cmd {
        let mut command = redis::cmd(verb);
        command.arg(script).arg(self.keys);
        for argument in self.arguments.args_iter() {
            if let redis::Arg::Simple(bytes) = argument {
                command.arg(bytes);
            }
        }
        command
    }
}

/// A number of milliseconds, as scripts write it.
pub(super) struct Millis(pub(super) Timestamp);

impl FromRedisValue for Millis {
    fn from_redis_value(value: Value) -> Result<Self, redis::ParsingError> {
        u64::from_redis_value(value).map(|millis| Self(Timestamp::from_millis(millis)))
    }
}
