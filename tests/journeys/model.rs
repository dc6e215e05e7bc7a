//! The whole life of a session against a small model that says who may be in. Sequences are random and shrink to the
//! least that shows a fault; what is found stays below as a test of its own. `MODEL_CASES=3000` runs more of them.
//!
//! Honest: whoever signed in stays in until a logout, a deadline or an operator, however late the answers of two tabs come
//! (up to a minute) and however many are lost, and no alarm rings; a store that is down is a 503 and never a logout.
//! Otherwise: after an end nobody is in, with whatever was copied before it; a thief beside an owner who is active is out
//! within four times `fresh`.

use std::time::Duration;

use http::StatusCode;
use portcullis::{AuthError, Session};
use proptest::{
    collection::vec,
    prelude::*,
    sample::Index,
    test_runner::{Config, RngSeed, TestRunner},
};

use crate::{
    browser::{Answer, Browser},
    handlers::{login, logout, reauthenticate, who},
    jar::{RENEWAL, SESSION},
    stage::{ABSOLUTE, FRESH, IDLE, Stage},
};

/// What happens next.
#[derive(Debug, Clone)]
enum Step {
    /// Seconds pass.
    Pass(u64),
    /// A tab of the owner asks, with what the jar holds now; the request arrives some seconds later, and its answer some
    /// more, or is lost.
    Ask {
        queued: u64,
        late: u64,
        lost: bool,
        writes: bool,
        /// Its session cookie has been pushed out of the jar: the token alone must do.
        evicted: bool,
    },
    Login,
    Logout,
    Reauthenticate,
    /// The operator signs the owner out everywhere.
    Operator,
    /// The thief copies the owner's jar.
    Steal,
    /// The thief asks, with what he has.
    Thief,
    StoreGoesDown,
    StoreComesBack,
}

/// Writes, and tells of a store that is down.
async fn scribble(session: Session) -> Result<&'static str, AuthError> {
    session.insert("colour", "green").await?;
    Ok("written")
}

/// Who may be in.
#[derive(Debug, Default)]
struct Model {
    /// Counts logins and new authentications: each gives the session another id.
    id: u32,
    /// The first id of the login that is on; none after an end.
    login: Option<u32>,
    authenticated: Duration,
    renewed: Duration,
    /// When each id before the present one was given up: its fresh cookies live out.
    superseded: Vec<(u32, Duration)>,
    /// Somebody else has used what belongs to the present id.
    stolen: bool,
    /// The session cookie was pushed out of the jar, so that two renewals followed each other within the time a request can
    /// be under way. One that was sent before both and arrives after both brings a token that looks used up: the
    /// coincidence in which an honest user is signed out.
    unlucky: bool,
    /// Somebody asked for the end while the store was down. It is written when the store is back, and may hold before.
    is_ending: bool,
    store_is_down: bool,
}

impl Model {
    fn is_over(&self, now: Duration) -> bool {
        self.login.is_none() || now >= self.renewed + IDLE || now >= self.authenticated + ABSOLUTE
    }

    /// Whether what was copied at `id` may let somebody in.
    fn may_be_in(&self, id: u32, now: Duration) -> bool {
        let is_of_this_login = self.login.is_some_and(|first| id >= first);
        let lives_out = self.superseded.iter().any(|(older, at)| *older == id && now < *at + FRESH);
        is_of_this_login && !self.is_over(now) && (id == self.id || lives_out)
    }

    fn authenticate(&mut self, now: Duration, is_login: bool) {
        self.superseded.push((self.id, now));
        self.id += 1;
        self.login = if is_login { Some(self.id) } else { self.login };
        (self.authenticated, self.renewed) = (now, now);
        (self.stolen, self.unlucky, self.is_ending) = (false, false, false);
    }

    /// Whether the alarm may ring, and the owner be out.
    const fn is_excused(&self) -> bool {
        self.stolen || self.unlucky || self.is_ending
    }
}

struct World {
    stage: Stage,
    model: Model,
    owner: Browser,
    /// What is under way, each with the second at which it arrives.
    under_way: Vec<(u64, UnderWay)>,
    thief: Option<(u32, Browser)>,
    began: u64,
}

impl World {
    async fn new() -> Self {
        let stage = Stage::memory().await;
        let owner = stage.browser();
        let began = stage.second();
        Self { stage, model: Model::default(), owner, under_way: Vec::new(), thief: None, began }
    }

    fn now(&self) -> Duration {
        Duration::from_secs(self.stage.second() - self.began)
    }

    async fn step(&mut self, step: &Step) {
        // A login ends what was stolen, and its own request may be the one that trips the alarm.
        let was_excused = self.model.is_excused();
        match step {
            Step::Pass(seconds) => self.pass(*seconds).await,
            Step::Ask { queued, late, lost, writes, evicted } => {
                let mut tab = self.owner.clone();
                if *evicted {
                    tab.jar = tab.jar.without(SESSION);
                }
                let asked = Asked { tab, late: *late, lost: *lost, writes: *writes, evicted: *evicted };
                self.under_way.push((self.stage.second() + queued, UnderWay::Request(Box::new(asked))));
                self.deliver(self.stage.second()).await;
            }
            Step::Login => {
                self.deliver(u64::MAX).await;
                let answer = self.owner.visit(login("alice")).await;
                if self.done(&answer) {
                    self.model.authenticate(self.now(), true);
                }
            }
            Step::Reauthenticate => {
                self.deliver(u64::MAX).await;
                let answer = self.owner.visit(reauthenticate).await;
                if answer.status == StatusCode::UNAUTHORIZED {
                    let may = self.model.is_over(self.now()) || self.model.is_excused();
                    assert!(may || self.model.store_is_down, "the owner is out: {answer:?}");
                } else if self.done(&answer) {
                    self.model.authenticate(self.now(), false);
                }
            }
            Step::Logout => {
                self.deliver(u64::MAX).await;
                let held = self.owner.jar.value(RENEWAL).is_some();
                let answer = self.owner.visit(logout).await;
                // Whether it was over already or not: from here on nobody must be in.
                if self.done(&answer) {
                    self.model.login = self.model.login.filter(|_| !held);
                } else {
                    self.model.is_ending = true;
                }
            }
            Step::Operator => match self.stage.layer.logout_everywhere("alice").await {
                Ok(_) => self.model.login = None,
                Err(_) => self.model.is_ending = true,
            },
            Step::Steal => self.thief = Some((self.model.id, self.owner.clone())),
            Step::Thief => {
                let Some((id, mut thief)) = self.thief.take() else { return };
                let answer = thief.visit(who).await;
                let is_in = self.judge(&answer, true);
                let may = self.model.may_be_in(id, self.now());
                assert!(!is_in || may, "the thief is in with what he copied before the end");
                // After the end it may be a session of nobody that he shares with the owner.
                self.model.stolen |= id == self.model.id || self.model.is_over(self.now());
                self.thief = Some((id, thief));
            }
            Step::StoreGoesDown => {
                self.stage.store.goes_down();
                self.model.store_is_down = true;
            }
            Step::StoreComesBack => {
                self.stage.store.comes_back();
                self.model.store_is_down = false;
            }
        }
        let alarm = self.stage.events.names().contains(&"authn_token_reuse");
        assert!(!alarm || was_excused || self.model.is_excused(), "a false alarm");
    }

    /// Whether the answer says that somebody is in; what it renewed is noted, whether it arrives or not.
    fn judge(&mut self, answer: &Answer, says_who: bool) -> bool {
        // After the end a write begins a session of nobody, which renews nothing.
        if answer.cookies.sets(RENEWAL).is_some() && !self.model.is_over(self.now()) {
            self.model.renewed = self.now();
        }
        if self.model.store_is_down && answer.status == StatusCode::SERVICE_UNAVAILABLE {
            assert!(answer.cookies.is_empty(), "{answer:?}");
            return false;
        }
        let ok = answer.status == StatusCode::OK
            || (!says_who && answer.status == StatusCode::INTERNAL_SERVER_ERROR);
        assert!(ok, "{answer:?}");
        says_who && answer.body == "alice"
    }

    /// Whether what was asked for has been done; if not, nothing has changed.
    fn done(&self, answer: &Answer) -> bool {
        let is_done = answer.status == StatusCode::OK;
        assert!(
            is_done || (self.model.store_is_down && answer.status == StatusCode::SERVICE_UNAVAILABLE),
            "{answer:?}"
        );
        is_done
    }

    async fn pass(&mut self, seconds: u64) {
        let end = self.stage.second() + seconds;
        self.deliver(end).await;
        self.stage.pass(Duration::from_secs(end - self.stage.second()));
    }

    /// What is under way until `end` arrives, each in its turn; without an end everything does, now.
    async fn deliver(&mut self, end: u64) {
        loop {
            self.under_way.sort_by_key(|(due, _)| *due);
            if self.under_way.first().is_none_or(|(due, _)| *due > end) {
                return;
            }
            let (due, arrived) = self.under_way.remove(0);
            if end != u64::MAX {
                self.stage.pass(Duration::from_secs(due.saturating_sub(self.stage.second())));
            }
            match arrived {
                UnderWay::Request(asked) => self.serve(*asked).await,
                UnderWay::Answer(answer) => self.owner.take(&answer),
            }
        }
    }

    /// A request of the owner arrives, with what the jar held when it was sent.
    async fn serve(&mut self, asked: Asked) {
        let Asked { tab, late, lost, writes, evicted } = asked;
        let renewed_before = self.model.renewed;
        let answer = match writes {
            true => tab.ask(scribble).await,
            false => tab.ask(who).await,
        };
        let is_in = self.judge(&answer, !writes);
        let renews = answer.cookies.sets(RENEWAL).is_some();
        self.model.unlucky |= evicted && renews && self.now() < renewed_before + UNDER_WAY;
        let may = !self.model.is_over(self.now());
        assert!(!is_in || may, "the owner is in after the end");
        let must = may && !self.model.is_excused() && !writes;
        // A store that is down is a 503, and no word of who is there.
        let is_silent = self.model.store_is_down && answer.status == StatusCode::SERVICE_UNAVAILABLE;
        assert!(is_in || is_silent || !must, "the owner is out: {answer:?}");
        if !lost {
            self.under_way.push((self.stage.second() + late, UnderWay::Answer(answer)));
        }
    }
}

/// What is on its way between the owner's browser and the server.
enum UnderWay {
    Request(Box<Asked>),
    Answer(Answer),
}

/// A request of one of the owner's tabs.
struct Asked {
    tab: Browser,
    late: u64,
    lost: bool,
    writes: bool,
    evicted: bool,
}

/// How long a request is under way at most.
const UNDER_WAY: Duration = Duration::from_secs(60);

/// Mostly at once, sometimes much later, never more than a minute.
fn late() -> impl Strategy<Value = u64> {
    prop_oneof![6 => Just(0_u64), 2 => 1..5_u64, 3 => 1..=60_u64]
}

fn pass() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => 1..60_u64,
        3 => 240..=360_u64,
        1 => 1..=1900_u64,
    ]
    .prop_map(Step::Pass)
}

fn ask() -> impl Strategy<Value = Step> {
    let queued = prop_oneof![3 => Just(0_u64), 1 => 1..=60_u64];
    let sometimes = proptest::bool::weighted;
    (queued, late(), sometimes(0.08), sometimes(0.1), sometimes(0.2))
        .prop_map(|(queued, late, lost, writes, evicted)| Step::Ask { queued, late, lost, writes, evicted })
}

/// What happens to an honest user: two tabs and more, losses, outages, new authentications.
fn honest() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => ask(),
        6 => pass(),
        1 => Just(Step::Login),
        1 => Just(Step::Reauthenticate),
        1 => prop_oneof![Just(Step::StoreGoesDown), Just(Step::StoreComesBack)],
    ]
}

/// The same with a thief, an operator and logouts.
fn anything() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => honest(),
        2 => prop_oneof![Just(Step::Logout), Just(Step::Operator)],
        2 => Just(Step::Steal),
        1 => Just(Step::Reauthenticate),
        4 => Just(Step::Thief),
    ]
}

/// The same sequences each time, unless more are asked for: a suite that fails now and then is none.
fn seed() -> RngSeed {
    if std::env::var_os("MODEL_CASES").is_some() { RngSeed::Random } else { RngSeed::Fixed(1) }
}

fn run<S: Strategy>(cases: u32, strategy: S, play: impl Fn(S::Value)) {
    let cases = std::env::var("MODEL_CASES").ok().and_then(|number| number.parse().ok()).unwrap_or(cases);
    let config = Config {
        cases,
        failure_persistence: None,
        rng_seed: seed(),
        max_shrink_iters: 4000,
        ..Config::default()
    };
    TestRunner::new(config)
        .run(&strategy, |input| {
            play(input);
            Ok(())
        })
        .unwrap();
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

fn play(steps: &[Step]) {
    block_on(async {
        let mut world = World::new().await;
        world.step(&Step::Login).await;
        for step in steps {
            world.step(step).await;
        }
    });
}

#[test]
fn no_honest_user_is_ever_signed_out() {
    run(60, vec(honest(), 1..60), |steps| play(&steps));
}

#[test]
fn nobody_is_in_after_an_end() {
    run(60, vec(anything(), 1..60), |steps| play(&steps));
}

/// Found by the sequences above, and shrunk: a cookie of the older id was still let in until the feed had been heard.
#[test]
fn a_logout_ends_the_cookies_of_an_older_id_at_once() {
    play(&[Step::Steal, Step::Reauthenticate, Step::Logout, Step::Thief]);
    play(&[Step::Steal, Step::Reauthenticate, Step::Reauthenticate, Step::Operator, Step::Thief]);
}

/// Found by the sequences above, and left: the session cookie is pushed out of the jar within a minute after a renewal, and
/// a request from before that renewal arrives after the next one, which comes for that reason. Its token is two renewals
/// old, as a thief's would be; to forgive it would let a thief keep a used-up token alive. Either accident alone is forgiven.
#[test]
fn a_cookie_pushed_out_beside_a_late_request_is_taken_for_a_theft() {
    let ask = |queued, evicted| Step::Ask { queued, late: 1, lost: false, writes: false, evicted };
    let after = |slow: Step, next: Step| async move {
        let mut world = World::new().await;
        for step in [Step::Login, Step::Pass(FRESH.as_secs()), ask(0, false), slow, Step::Pass(30), next] {
            world.step(&step).await;
        }
        assert_eq!(world.owner.clone().who().await, "alice");
        world.step(&Step::Pass(3)).await;
        world.owner.clone().who().await
    };
    block_on(async {
        assert_eq!(after(ask(33, false), ask(0, true)).await, "nobody");
        assert_eq!(after(ask(33, false), ask(0, false)).await, "alice", "a late request alone");
        assert_eq!(after(ask(0, false), ask(0, true)).await, "alice", "a cookie pushed out alone");
    });
}

/// The owner asks every 20 s or oftener; the thief has copied the jar and uses what he holds as he likes.
#[test]
fn a_thief_beside_an_active_owner_is_out_within_four_times_fresh() {
    // One move is made again and again, more in turn; what he copied first, what he got last, or anything he holds.
    let which = prop_oneof![Just(Held::First), Just(Held::Last), any::<Index>().prop_map(Held::Any)];
    let moves = prop_oneof![
        vec((1..=90_u64, which.clone(), any::<bool>()), 1..3),
        vec((1..=90_u64, which, any::<bool>()), 1..60),
    ];
    run(40, (0..2 * FRESH.as_secs(), 3..=20_u64, moves), |(stolen_at, poll, moves)| {
        block_on(beside_an_active_owner(stolen_at, poll, &moves));
    });
}

/// Which of the jars that he holds the thief uses.
#[derive(Debug, Clone)]
enum Held {
    First,
    Last,
    Any(Index),
}

async fn beside_an_active_owner(stolen_at: u64, poll: u64, moves: &[(u64, Held, bool)]) {
    let stage = Stage::memory().await;
    let mut owner = stage.browser();
    owner.login("alice").await;
    let began = stage.second();
    let mut held: Vec<Browser> = Vec::new();
    let mut moves = moves.iter().cycle();
    let (mut next_move, mut next_poll) = (stolen_at, 0);
    let mut last_success = None;
    let end = stolen_at + 6 * FRESH.as_secs();
    while stage.second() - began < end {
        let now = stage.second() - began;
        if now >= next_poll {
            // Signed out, he waits for the end: a new login would end what the thief has.
            owner.visit(who).await;
            next_poll = now + poll;
        }
        if now >= next_move {
            if held.is_empty() {
                held.push(owner.clone());
            }
            let (wait, which, token_only) = moves.next().unwrap();
            let mut thief = match which {
                Held::First => held.first().unwrap().clone(),
                Held::Last => held.last().unwrap().clone(),
                Held::Any(index) => index.get(&held).clone(),
            };
            if *token_only {
                thief.jar = thief.jar.without(SESSION);
            }
            let answer = thief.visit(who).await;
            if answer.body == "alice" {
                last_success = Some(now);
            }
            if !answer.cookies.is_empty() {
                held.push(thief);
            }
            next_move = now + wait;
        }
        stage.pass(Duration::from_secs(next_poll.min(next_move).saturating_sub(now).max(1)));
    }
    if let Some(last) = last_success {
        let stayed = last - stolen_at;
        assert!(stayed <= 4 * FRESH.as_secs(), "he stayed {stayed} s");
    }
}
