use super::*;

#[test]
fn after_three_failures_one_tries_at_a_time() {
    let breaker = Breaker::default();
    for _ in 0..TRIP {
        breaker.enter().unwrap().ended(false);
    }
    let trial = breaker.enter().unwrap();
    assert!(breaker.enter().is_none() && breaker.enter().is_none());
    trial.ended(false);
    assert!(breaker.enter().is_some(), "the next may try, at once");
}

#[test]
fn one_success_opens_the_way_for_all() {
    let breaker = Breaker::default();
    for _ in 0..TRIP {
        breaker.enter().unwrap().ended(false);
    }
    breaker.enter().unwrap().ended(true);
    let all: Vec<_> = (0..100).map(|_| breaker.enter()).collect();
    assert!(all.iter().all(Option::is_some));
}

#[test]
fn failures_count_in_a_row_only() {
    let breaker = Breaker::default();
    for _ in 0..10 {
        for _ in 0..TRIP - 1 {
            breaker.enter().unwrap().ended(false);
        }
        breaker.enter().unwrap().ended(true);
    }
    let (first, second) = (breaker.enter(), breaker.enter());
    assert!(first.is_some() && second.is_some());
}

#[test]
fn a_trial_whose_caller_went_away_holds_nobody_up() {
    let breaker = Breaker::default();
    for _ in 0..TRIP {
        breaker.enter().unwrap().ended(false);
    }
    drop(breaker.enter().unwrap());
    assert!(breaker.enter().is_some());
}
