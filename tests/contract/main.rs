//! The contract suite: one set of promises, to which every session store is held.
//!
//! ```text
//! harness   how a store is made; a new store joins with one of these and one line below
//! stage     a fresh store with a second handle on its data, its clock, and the fixtures of the suite
//! keeper    a row keeper without keys, whose every call can be seen in the row
//! create … feed, interrupted    the promises, by verb; racing: all of them at once
//! sqlite    what is promised of a file only
//! ```
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, also in the helpers that clippy does not know to be tests"
)]

mod before;
mod commit;
mod create;
mod device;
mod end;
mod feed;
mod harness;
mod index;
mod interrupted;
mod keeper;
#[path = "../common/left_out.rs"]
mod left_out;
mod list;
mod purge;
mod racing;
mod restore;
mod rotate;
#[cfg(feature = "sqlite")]
#[path = "../common/scratch.rs"]
mod scratch;
mod software_key;
#[cfg(feature = "sqlite")]
mod sqlite;
mod stage;
#[cfg(any(feature = "redis", feature = "postgres"))]
#[path = "../common/unique.rs"]
mod unique;

/// Makes a test of each promise, which gets a stage of its own.
macro_rules! promises {
    ($harness:ty: $($verb:ident { $($promise:ident,)* })*) => {
        $(mod $verb {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() {
                if !<$harness as crate::harness::Harness>::is_there() {
                    return;
                }
                let stage = crate::stage::Stage::set::<$harness>().await;
                crate::stage::within(crate::stage::TEST_LIMIT, crate::$verb::$promise(stage)).await;
            })*
        })*
    };
}

/// Holds one store to every promise. A promise that is missing here is dead code, and the compiler says so.
macro_rules! hold_to_contract {
    ($store:ident, $harness:ty) => {
        mod $store {
            promises! { $harness:
                create {
                    a_created_session_is_loaded_with_its_row_and_fields,
                    a_taken_id_is_refused_and_nothing_changes,
                    a_new_session_gets_the_epoch_of_its_subject,
                    a_login_ends_the_session_it_replaces_in_the_same_step,
                    a_login_publishes_also_a_session_that_is_gone,
                    a_move_ends_the_session_it_moves,
                    what_is_not_live_cannot_be_moved_and_nothing_is_created,
                    a_superseded_session_is_loaded_and_takes_no_commit,
                    tokens_of_a_superseded_session_renew_nothing,
                    what_is_not_live_cannot_be_superseded_and_nothing_is_created,
                    a_session_that_was_written_to_since_it_was_read_is_not_replaced,
                }
                commit {
                    a_commit_writes_overwrites_and_removes_fields,
                    a_commit_creates_nothing,
                    a_session_that_is_over_takes_no_commit,
                    commits_of_different_fields_both_win,
                    of_two_commits_of_one_field_the_later_wins,
                    a_revocation_wins_over_a_commit_in_flight,
                    a_commit_shortens_the_deadline_and_the_end_with_it,
                    a_deadline_beyond_the_end_changes_nothing,
                    a_deadline_between_the_present_one_and_the_end_changes_nothing,
                    an_edit_raises_the_claims_version_and_is_published,
                    a_row_that_is_not_as_signed_takes_no_commit,
                }
                rotate {
                    a_good_token_after_the_grace_wins,
                    a_good_token_within_the_grace_is_young,
                    the_token_before_is_an_echo_within_the_grace,
                    the_token_before_is_refused_to_another_client_within_the_grace,
                    the_token_before_is_answered_again_after_the_grace,
                    a_token_the_store_has_not_issued_yet_rolls_it_forward,
                    a_used_up_token_revokes_the_session,
                    every_combination_is_judged_as_by_the_pure_table,
                    a_renewal_moves_the_deadline_by_the_idle_timeout_up_to_the_end,
                    a_renewal_without_activity_leaves_the_deadline,
                    the_user_prolongs_what_a_polling_page_has_renewed,
                    three_socket_upgrades_are_admitted_per_generation,
                    a_socket_upgrade_changes_nothing_but_its_count,
                    a_socket_upgrade_with_another_token_is_refused,
                    a_socket_upgrade_with_a_used_up_token_revokes_the_session,
                    a_row_that_is_not_as_signed_is_not_rotated,
                    of_many_renewals_at_once_one_wins,
                }
                device {
                    a_device_is_bound_once_and_lengthens_its_session,
                    an_end_that_the_application_has_set_stands_when_a_device_is_bound,
                    a_bound_session_is_renewed_by_its_device_alone,
                    a_proof_binds_again_what_the_store_has_lost,
                    each_challenge_is_answered_once,
                    of_two_who_answer_one_challenge_at_once_one_is_taken,
                    a_new_authentication_of_a_bound_session_keeps_its_device,
                    a_session_that_is_over_is_bound_and_renewed_by_nobody,
                    a_row_that_was_changed_takes_no_device,
                }
                software_key {
                    a_script_s_key_is_bound_once_and_lengthens_nothing,
                    a_token_beside_a_script_s_key_renews_by_the_table,
                    a_device_s_key_takes_the_place_of_a_script_s,
                    a_device_s_proof_takes_the_place_of_a_script_s_key,
                    a_signed_token_binds_nothing,
                    a_new_authentication_keeps_a_script_s_key,
                }
                end {
                    a_session_is_over_exactly_at_its_deadline,
                    a_session_is_over_exactly_at_its_end,
                    a_revoked_session_is_gone_with_its_data_and_published,
                    revoking_what_is_over_finds_none_and_is_published,
                    revoking_the_newest_id_ends_all_its_predecessors,
                    revoking_a_superseded_session_leaves_the_newer_one,
                    signing_a_subject_out_ends_its_sessions_and_counts_them,
                    after_a_sign_out_everywhere_a_new_session_lives,
                    no_session_escapes_a_sign_out_everywhere_by_a_race,
                }
                list {
                    a_list_has_the_live_sessions_of_the_subject_oldest_first,
                }
                purge {
                    a_purge_removes_what_is_over_and_nothing_else,
                    a_purge_drops_revocations_older_than_the_window_only,
                    a_purge_keeps_what_the_widest_window_needs,
                    a_purge_keeps_epochs,
                }
                feed {
                    a_window_gives_everything_in_it_at_once,
                    a_position_gives_only_what_comes_after_it,
                    a_subscriber_waits_and_wakes_for_the_other_handle,
                    positions_stay_true_when_entries_are_purged,
                    a_dropped_subscription_loses_nothing,
                    the_store_tells_the_instant_of_its_clock,
                }
                before {
                    everybody_from_before_is_over_and_nobody_from_after,
                    nothing_but_a_new_authentication_gets_out_of_it,
                    an_earlier_moment_changes_nothing,
                }
                restore {
                    what_is_restored_is_ended_and_published,
                    a_restored_epoch_ends_nobody_who_came_after_it,
                    restoring_the_newest_id_ends_its_predecessors,
                }
                interrupted {
                    a_commit_cut_short_is_done_or_not_done,
                    a_rotation_cut_short_is_done_or_not_done,
                    a_revocation_cut_short_is_done_or_not_done,
                }
                racing {
                    ten_thousand_operations_at_once_break_no_rule,
                }
                index {
                    an_index_secret_can_be_claimed_again_but_no_other,
                    a_handle_opened_later_knows_the_index_secret,
                    of_two_index_secrets_at_once_one_creates_sessions,
                    a_refused_first_session_does_not_lose_the_index_secret,
                }
            }
        }
    };
}

hold_to_contract!(memory, crate::harness::Memory);
#[cfg(feature = "sqlite")]
hold_to_contract!(sqlite_store, crate::harness::Sqlite);
#[cfg(feature = "redis")]
hold_to_contract!(redis_alone, crate::harness::Redis<crate::harness::Alone>);
#[cfg(feature = "redis")]
hold_to_contract!(redis_sentinel, crate::harness::Redis<crate::harness::Sentinel>);
#[cfg(feature = "redis")]
hold_to_contract!(redis_cluster, crate::harness::Redis<crate::harness::Cluster>);
#[cfg(feature = "postgres")]
hold_to_contract!(postgres, crate::harness::Postgres);
