//! What a limiter does, on every backend.

use std::time::Duration;

use tallygate::{Decision, Policy, Rule, Subject};
use tallygate_harness::server::{Server, ask, now_us};
use tallygate_harness::stored::calls;

tallygate_harness::every_backend!(
    admits_exactly_count,
    slides,
    retry_after_is_exact_on_either_side,
    a_later_rules_denial_leaves_the_earlier_uncharged,
    the_rule_that_denies_longest_is_named,
    a_denial_tells_the_rule,
    subjects_do_not_touch_each_other,
    a_flood_of_other_subjects_takes_nothing_from_a_subject,
    a_changed_count_keeps_the_tally,
    duplicates_are_distinguished_from_too_many_calls,
    a_duplicate_is_named_before_a_stricter_rule,
    many_rules_decide_together,
    nothing_counts_after_the_longest_window,
    denied_calls_do_not_put_off_admission,
    a_great_cost_takes_no_more_room_than_the_windows_need,
    a_cost_beyond_all_numbers_never_fits,
    a_count_of_zero_closes_the_door,
    a_report_says_when_one_more_call_fits,
    a_call_that_costs_nothing_leaves_every_rule_whole,
    a_wait_that_outlasts_a_bucket_is_for_ever,
    all_units_of_a_call_are_charged_or_none,
    a_cost_of_nothing_or_beyond_the_limit_of_a_unit_is_decided_by_that_unit,
    a_settlement_of_a_unit_leaves_the_others,
    one_unit_of_a_call_is_refunded_by_settling_it_for_nothing,
    what_is_paid_afterwards_counts_even_beyond_the_limit,
    what_is_used_afterwards_never_makes_room,
    what_has_ended_leaves_room_for_what_is_used_afterwards,
    the_most_windows_are_decided_beside_another_unit,
    meters_settle_their_units_together_and_hold_no_lease,
    a_refunded_call_is_settled_for_nothing_more,
    a_refund_on_an_unknown_subject_leaves_the_meters,
    only_a_unit_that_a_call_has_is_metered,
    units_of_several_subjects_and_running_calls_are_decided_together,
    a_call_names_only_units_of_its_policy,
    a_cost_in_calls_that_no_rule_counts_is_an_error,
    the_permit_of_a_peek_gives_no_unit_back,
    a_refund_on_a_subject_removes_all_of_its_units,
    denials_by_a_unit_lead_to_a_ban,
    a_count_of_nothing_closes_a_unit_for_those_who_pay_in_it,
    a_closed_rule_for_duplicates_denies_whatever_a_call_costs,
    the_denial_of_a_costly_call_denies_no_cheaper_one,
    a_settlement_of_a_unit_wakes_a_caller_that_waits,
    a_caller_behind_one_that_pays_afterwards_waits_for_its_room,
    a_permit_warns_of_the_unit_that_comes_near_its_limit,
    units_are_taken_ahead_each_by_its_own_cost,
    a_rule_in_shadow_counts_its_unit,
    a_call_that_runs_in_shadow_settles_the_rules_in_shadow_beside,
    subjects_are_charged_together_or_not_at_all,
    a_call_names_every_subject_and_no_other,
    a_refund_removes_the_hits_of_its_call_alone,
    a_refund_that_comes_too_late_removes_nothing,
    a_refund_says_whether_the_hits_still_counted,
    a_refund_of_tokens_that_flowed_in_again_adds_none,
    a_refund_reaches_every_rule_in_which_the_call_counts,
    a_refund_leaves_another_call_of_the_same_instant,
    a_refund_of_a_peek_removes_nothing,
    a_refund_leaves_what_a_larger_bucket_holds,
    a_refund_lets_a_denied_subject_call_again,
    only_a_refundable_permit_can_be_refunded,
    denials_lead_to_a_ban,
    denials_far_apart_lead_to_no_ban,
    a_peek_counts_nothing,
    a_costly_call_waits_until_enough_weight_has_left,
    heavy_calls_that_have_ended_do_not_hide_what_counts,
    a_refund_in_the_middle_gives_back_its_weight_alone,
    a_refunded_call_is_no_duplicate,
    a_window_holds_calls_of_any_weight_up_to_its_count,
    a_refund_far_behind_the_last_call_gives_nothing_back,
    a_settled_call_counts_as_what_it_has_used,
    a_call_that_has_used_more_than_the_limit_is_waited_off,
    a_bucket_that_is_full_again_is_charged_what_was_used_beyond_the_cost,
    a_bucket_that_a_settlement_empties_fills_up_from_then_on,
    a_call_that_is_over_settles_nothing,
    a_settled_call_stays_one_call_unless_it_has_used_nothing,
    a_settlement_far_behind_the_last_call_only_adds,
    a_call_that_has_reserved_nothing_cannot_be_settled,
    a_metered_call_is_settled_for_what_was_added_when_its_last_meter_is_dropped,
    no_more_is_left_of_a_rule_than_the_other_side_says,
    a_sliding_window_counts_the_use_of_others_until_the_other_side_counts_anew,
    a_sliding_window_whose_calls_are_too_new_for_a_reset_stays_as_it_is,
    a_rule_that_would_count_the_use_of_others_for_long_after_a_reset_stays_as_it_is,
    no_longer_window_comes_above_its_count_by_the_use_of_others,
    the_use_of_others_counts_in_no_other_rule_with_a_counter_of_its_own,
    a_window_that_counts_the_answered_call_no_more_stays_as_it_is,
    a_long_log_leaves_exactly_what_the_other_side_says,
    the_use_of_others_counts_in_its_unit_alone,
    only_a_limit_of_a_refundable_call_can_be_told_what_is_left,
    a_permit_warns_from_the_share_of_the_limit_on,
    a_permit_warns_of_the_tightest_rule,
    no_more_calls_are_running_than_the_limit,
    leases_are_taken_with_all_rules_or_not_at_all,
    each_subject_has_concurrent_calls_of_its_own,
    a_concurrent_call_counts_once_whatever_its_cost,
    a_limit_of_no_concurrent_calls_is_closed,
    a_call_whose_permit_is_refunded_is_over,
    a_caller_that_waits_is_woken_when_a_call_is_over,
    a_call_that_takes_no_lease_waits_for_one_to_be_over,
    a_duplicate_waits_no_longer_than_its_window_and_the_concurrent_call,
    what_is_given_back_wakes_a_caller_that_waits,
    room_reaches_every_caller_of_a_queue,
    a_caller_that_cannot_be_served_in_time_hears_so_at_once,
    a_cheap_caller_behind_a_costly_one_is_served_at_its_deadline,
    a_paused_subject_is_denied_until_the_end,
    a_shorter_pause_does_not_shorten_a_longer_one,
    a_pause_says_who_has_said_it,
    a_pause_lasts_no_longer_than_the_longest,
    only_a_pausable_policy_can_be_paused,
    a_permit_pauses_the_subject_of_its_call,
    a_pause_leaves_all_units_and_subjects_uncharged,
    a_policy_may_let_another_subject_be_paused,
    a_pause_leads_to_no_ban,
    a_policy_with_rules_in_shadow_is_paused_as_others_are,
    a_caller_waits_for_the_end_of_a_pause,
    one_call_at_a_time_is_tried_after_a_pause_until_one_has_succeeded,
    the_time_after_a_pause_gets_no_shorter_if_the_pause_is_prolonged,
    neither_a_call_from_before_a_pause_nor_a_refund_opens_its_subject,
    a_tried_call_that_is_told_to_wait_pauses_again,
    the_success_of_a_tried_call_does_not_end_a_pause_that_was_said_meanwhile,
    the_place_of_a_tried_call_is_free_after_a_minute,
    a_subject_is_open_after_as_long_again_without_a_pause,
    a_call_that_the_rules_deny_and_a_peek_take_no_place,
    a_caller_that_the_rules_deny_when_it_is_tried_sleeps_until_they_have_room,
    a_caller_waits_for_the_place_of_a_tried_call,
);

/// Without Redis nothing can be changed by hand.
mod by_hand {
    tallygate_harness::every_store!(
        an_override_of_a_unit_keeps_what_the_others_have_counted,
        overrides_of_calls_keep_what_a_unit_has_counted_in_other_windows,
        a_ban_of_one_subject_leaves_the_others_uncharged,
        a_banned_call_is_reported_on_and_counts_nowhere,
        a_banned_call_that_no_wait_admits_has_no_wait,
        a_banned_call_waits_for_the_rules_too,
        a_reset_forgets_everything,
        a_reset_forgets_the_concurrent_calls,
        a_reset_leaves_the_other_subjects_of_the_call_alone,
        a_reset_of_a_subject_that_no_rule_counts_is_an_error,
        a_ban_by_hand_holds_however_long_or_short_it_is,
        a_subject_can_be_banned_and_unbanned_by_hand,
        a_reset_and_the_end_of_a_ban_wake_a_caller_that_waits,
        other_rules_wake_a_caller_that_waits,
        the_end_of_an_override_wakes_a_caller_that_waits,
        a_resumed_subject_is_admitted_at_once,
        an_override_leaves_a_pause_in_force,
        an_override_that_puts_the_main_subject_in_shadow_leaves_its_pause_in_force,
        one_call_at_a_time_is_tried_although_no_rule_in_force_counts_its_subject,
    );
}

/// Only in Redis, another process hears of a pause.
mod of_pauses {
    tallygate_harness::in_redis!(
        other_processes_hear_of_a_pause,
        a_pause_that_another_process_ends_is_over,
        a_pause_concerns_only_its_subject_among_calls_that_are_sent_together,
        one_call_at_a_time_is_tried_in_all_processes,
    );
}

mod draining {
    tallygate_harness::every_store!(
        a_drained_limiter_leaves_nothing_taken,
        a_drained_limiter_goes_on_deciding,
        a_metered_call_is_still_under_way,
    );
}

/// Only in Redis, a call that runs has something under way.
mod of_running_calls {
    tallygate_harness::in_redis!(a_call_that_runs_is_still_under_way);
}

/// Redis would take minutes for so many calls, one after the other. The tests of the model ask it about dense logs, too.
mod of_dense_logs {
    tallygate_harness::in_memory!(a_dense_window_never_holds_more_than_its_count, a_window_tells_65_536_calls_apart);
}

fn policy(count: u64, per: Duration) -> Policy {
    Policy::builder("p").rule(Rule::sliding_window(count, per)).build().unwrap()
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap()
}

/// The time of the newest hit as it is stored, unless all is over already.
fn newest_us(connection: &mut redis::Connection) -> Option<u64> {
    let tally: Vec<u8> = ask(connection, "GET tallygate:p/w20ms:s");
    calls(&tally).last().map(|(time_us, _)| *time_us)
}

#[tokio::test]
async fn retry_after_goes_by_the_servers_clock_to_the_microsecond() {
    let (server, per) = (Server::start(), Duration::from_millis(20));
    let (limiter, policy, subject) = (server.limiter().await, policy(1, per), Subject::of("s"));
    let mut connection = server.connection();
    let mut denials = 0;
    while denials < 5 {
        let free_us = newest_us(&mut connection).map(|hit_us| hit_us + micros(per));
        let before_us = now_us(&mut connection);
        if let Decision::Denied(denial) = limiter.check(&policy, &subject).await.unwrap() {
            let decided_us = free_us.unwrap() - micros(denial.retry_after().unwrap());
            assert!(
                (before_us..=now_us(&mut connection)).contains(&decided_us),
                "it is counted from the server's time"
            );
            denials += 1;
        } else if let Some(hit_us) = newest_us(&mut connection) {
            assert!(free_us.is_none_or(|free_us| hit_us >= free_us), "a call is admitted at its time and no earlier");
        }
    }
}

#[tokio::test]
async fn a_caller_that_sleeps_retry_after_is_admitted() {
    let server = Server::start();
    let (limiter, policy, subject) = (server.limiter().await, policy(3, Duration::from_millis(40)), Subject::of("s"));
    let mut slept = 0;
    while slept < 10 {
        if let Decision::Denied(denial) = limiter.check(&policy, &subject).await.unwrap() {
            tokio::time::sleep(denial.retry_after().unwrap()).await;
            assert!(limiter.check(&policy, &subject).await.unwrap().is_allowed());
            slept += 1;
        }
    }
}

#[tokio::test]
async fn no_window_of_the_servers_clock_holds_more_than_count() {
    let (server, per, count) = (Server::start(), Duration::from_millis(50), 5);
    let (limiter, policy, subject) = (server.limiter().await, policy(count, per), Subject::of("s"));
    let mut connection = server.connection();
    // Between which two times each admitted call was decided.
    let mut between_us = Vec::new();
    while between_us.len() < 60 {
        let before_us = now_us(&mut connection);
        if limiter.check(&policy, &subject).await.unwrap().is_allowed() {
            between_us.push((before_us, now_us(&mut connection)));
        }
    }
    for calls in between_us.windows(usize::try_from(count).unwrap() + 1) {
        let (earliest_us, latest_us) = (calls[0].0, calls[calls.len() - 1].1);
        assert!(latest_us - earliest_us >= micros(per), "{calls:?}");
    }
}
