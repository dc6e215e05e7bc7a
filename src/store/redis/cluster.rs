//! A cluster, as 64 partitions want it: one connection to each node, and a map of which node has which partition.
//!
//! The cluster client of the crate `redis` (1.8.1) stops answering for every slot some time after one node is lost, if many
//! requests are under way; with a connection of its own for each node, what lies on the others goes on.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use redis::{
    Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, FromRedisValue as _, RedisError, RedisResult,
    ServerErrorKind, Value,
};
use tokio::sync::Mutex;

use super::{
    keys::{PARTITIONS, tag},
    link::{Channel, Link, is_lost},
    target::Target,
};

/// The nodes of a cluster.
pub(super) struct Cluster {
    seed: ConnectionInfo,
    seeds: Vec<ConnectionInfo>,
    /// Nodes that a slot on its way was asked of before the map knew them.
    asked: std::sync::Mutex<HashMap<String, Arc<Link>>>,
    channel: Option<Channel>,
    /// The slot of each partition.
    slots: Vec<u16>,
    map: RwLock<Arc<Map>>,
    refreshing: Mutex<()>,
}

/// Who has what.
#[derive(Default)]
struct Map {
    nodes: HashMap<String, Arc<Link>>,
    /// The node of each partition.
    owners: Vec<Option<String>>,
}

/// `CLUSTER SLOTS`: from, to, and the primary before its replicas.
type Range = (u16, u16, Value);

impl Cluster {
    /// Connects to the first of the seeds that answers, and learns of the others from it.
    pub(super) async fn open(seeds: &[ConnectionInfo], channel: Option<Channel>) -> RedisResult<Arc<Self>> {
        let mut refused = RedisError::from((ErrorKind::InvalidClientConfig, "no node is named"));
        for seed in seeds {
            let target = Target::One(Box::new(seed.clone()));
            match Link::open(target, channel.clone()).await {
                Ok(link) => {
                    let mut slots = Vec::new();
                    for partition in 0..PARTITIONS {
                        let mut command = redis::cmd("CLUSTER");
                        command.arg("KEYSLOT").arg(tag(partition));
                        slots.push(u16::from_redis_value(link.send(&command).await?)?);
                    }
                    let nodes = HashMap::from([(seed.addr().to_string(), link)]);
                    let map = RwLock::new(Arc::new(Map { nodes, owners: Vec::new() }));
                    let (seed, seeds) = (seed.clone(), seeds.to_vec());
                    let (asked, refreshing) = (std::sync::Mutex::default(), Mutex::default());
                    let cluster = Self { seed, seeds, asked, channel, slots, map, refreshing };
                    cluster.refresh(&cluster.map()).await?;
                    return Ok(Arc::new(cluster));
                }
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    /// Sends a command to the node that has a partition.
    pub(super) async fn send(&self, partition: u8, command: &Cmd) -> RedisResult<Value> {
        let mut last = None;
        for _ in 0..MOST_TRIES {
            let map = self.map();
            let Some(link) = map.owner(partition) else {
                self.refresh(&map).await?;
                last = Some((ErrorKind::ClusterConnectionNotFound, "no node has this partition").into());
                continue;
            };
            match link.send(command).await {
                Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::Moved) => {
                    self.refresh(&map).await?;
                    last = Some(error);
                }
                // The slot is on its way to another node, which has this key already.
                Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::Ask) => {
                    let Some((address, _)) = error.redirect_node() else { return Err(error) };
                    return self.asked(&map, address)?.ask(command).await;
                }
                Err(error) if is_lost(&error) => {
                    // Perhaps a replica has taken over; whoever comes next will know.
                    let _ = self.refresh(&map).await;
                    let is_news = !Arc::ptr_eq(&map, &self.map());
                    if !is_news {
                        return Err(error);
                    }
                    last = Some(error);
                }
                done => return done,
            }
        }
        Err(last.unwrap_or_else(|| (ErrorKind::Io, "the cluster does not come to rest").into()))
    }

    /// Asks any node for the map, unless somebody did since `seen`. A map that is the same stays.
    async fn refresh(&self, seen: &Arc<Map>) -> RedisResult<()> {
        let _turn = self.refreshing.lock().await;
        let old = self.map();
        if !Arc::ptr_eq(seen, &old) {
            return Ok(());
        }
        let mut refused = RedisError::from((ErrorKind::Io, "no node of the cluster answers"));
        let mut command = redis::cmd("CLUSTER");
        command.arg("SLOTS");
        for link in old.nodes.values() {
            match link.send(&command).await {
                Ok(answer) => return self.learn(&old, answer),
                Err(error) => refused = error,
            }
        }
        // All nodes may have new addresses, behind names that are the same.
        for seed in &self.seeds {
            if let Ok(link) = Link::open(Target::One(Box::new(seed.clone())), None).await
                && let Ok(answer) = link.send(&command).await
            {
                return self.learn(&old, answer);
            }
        }
        Err(refused)
    }

    fn learn(&self, old: &Map, answer: Value) -> RedisResult<()> {
        let new = self.read(old, answer)?;
        if new.owners != old.owners {
            self.asked.lock().unwrap_or_else(PoisonError::into_inner).clear();
            *self.map.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
        }
        Ok(())
    }

    /// The connection to a node that a slot is on its way to.
    fn asked(&self, map: &Map, address: &str) -> RedisResult<Arc<Link>> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(link) = asked.get(address) {
            return Ok(Arc::clone(link));
        }
        let link = self.node(map, address)?;
        asked.insert(address.to_owned(), Arc::clone(&link));
        Ok(link)
    }

    fn read(&self, old: &Map, answer: Value) -> RedisResult<Map> {
        let ranges: Vec<Vec<Value>> = Vec::from_redis_value(answer)?;
        let mut owners = vec![None; self.slots.len()];
        let mut map = Map::default();
        for range in ranges {
            let mut range = range.into_iter();
            let (Some(from), Some(to), Some(primary)) = (range.next(), range.next(), range.next()) else {
                continue;
            };
            let (from, to, primary): Range =
                (u16::from_redis_value(from)?, u16::from_redis_value(to)?, primary);
            let parts: Vec<Value> = Vec::from_redis_value(primary)?;
            let mut parts = parts.into_iter();
            let (host, port) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            let host = Option::<String>::from_redis_value(host)?.filter(|host| !host.is_empty());
            let (seed_host, _) = self.place();
            let address = format!("{}:{}", host.unwrap_or(seed_host), u16::from_redis_value(port)?);
            for (owner, slot) in owners.iter_mut().zip(&self.slots) {
                if (from..=to).contains(slot) {
                    *owner = Some(address.clone());
                }
            }
            let link = self.node(old, &address)?;
            map.nodes.insert(address, link);
        }
        map.owners = owners;
        Ok(map)
    }

    /// The connection to a node, which is made if there is none.
    fn node(&self, map: &Map, address: &str) -> RedisResult<Arc<Link>> {
        if let Some(link) = map.nodes.get(address) {
            return Ok(Arc::clone(link));
        }
        let wrong = || RedisError::from((ErrorKind::InvalidClientConfig, "a node's address is none"));
        let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
        let port = port.parse().map_err(|_| wrong())?;
        let address = match self.seed.addr() {
            ConnectionAddr::TcpTls { insecure, tls_params, .. } => ConnectionAddr::TcpTls {
                host: host.into(),
                port,
                insecure: *insecure,
                tls_params: tls_params.clone(),
            },
            _ => ConnectionAddr::Tcp(host.into(), port),
        };
        Ok(Link::start(Target::One(Box::new(self.seed.clone().set_addr(address))), self.channel.clone()))
    }

    fn place(&self) -> (String, u16) {
        match self.seed.addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                (host.clone(), *port)
            }
            _ => (String::new(), 0),
        }
    }

    fn map(&self) -> Arc<Map> {
        Arc::clone(&self.map.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Map {
    fn owner(&self, partition: u8) -> Option<&Arc<Link>> {
        let address = self.owners.get(usize::from(partition))?.as_ref()?;
        self.nodes.get(address)
    }
}

/// A slot that moves again and again is not waited for.
const MOST_TRIES: u32 = 4;
