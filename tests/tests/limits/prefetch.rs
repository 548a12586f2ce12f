//! Calls that are taken ahead from Redis: exact, whatever happens in between.

mod around;
mod busy;
mod parts;
mod share;
mod subjects;

tallygate_harness::every_store!(
    a_busy_subject_uses_its_limit_to_the_end_and_no_further,
    what_a_busy_subject_does_not_use_is_given_back,
    a_call_of_a_busy_subject_is_charged_its_cost,
    a_call_of_a_busy_subject_is_refunded_and_settled,
    a_report_of_a_busy_subject_counts_its_calls_alone,
    a_peek_of_a_busy_subject_says_that_a_unit_is_used_up,
    a_reset_of_a_busy_subject_begins_anew,
    a_banned_subject_that_was_busy_is_denied_at_once,
    a_busy_tenant_counts_the_admitted_calls_of_its_users_alone,
    a_busy_tenant_at_its_limit_leaves_its_users_uncharged,
    a_call_of_a_busy_tenant_is_refunded_on_all_its_subjects,
    the_users_of_a_busy_tenant_have_concurrent_calls_of_their_own,
    denials_of_a_busy_subject_count_towards_its_ban,
);
