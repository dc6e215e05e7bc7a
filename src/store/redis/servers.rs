//! Whom to ask: one server, or the node of a cluster that has a partition.

use std::sync::Arc;

use redis::{Cmd, RedisResult, Value};

use super::{
    cluster::Cluster,
    link::{Channel, Link},
    target::Target,
};

/// The servers of a store.
pub(super) enum Servers {
    One(Arc<Link>),
    Cluster(Arc<Cluster>),
}

impl Servers {
    /// Connects.
    pub(super) async fn open(target: &Target, channel: Option<Channel>) -> RedisResult<Self> {
        match target {
            Target::Cluster(seeds) => Cluster::open(seeds, channel).await.map(Self::Cluster),
            one => Link::open(one.clone(), channel).await.map(Self::One),
        }
    }

    /// Sends a command to the server that has a partition.
    pub(super) async fn send(&self, partition: u8, command: &Cmd) -> RedisResult<Value> {
        match self {
            Self::One(link) => link.send(command).await,
            Self::Cluster(cluster) => cluster.send(partition, command).await,
        }
    }
}
