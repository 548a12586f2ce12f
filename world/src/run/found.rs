//! Worlds in which a promise was broken, or seemed to be. They are played from then on.

use crate::run;
use crate::topology::Plant;
use crate::workload::{Extent, Topology};

fn play(topology: Topology, seed: u64) {
    if let Err(failure) = run::seed(seed, topology, Extent::default(), &Plant::default()) {
        panic!("{}", failure.violation);
    }
}

#[test]
fn a_call_that_is_settled_before_its_lease_ends_holds_no_lease() {
    play(Topology::Server, 92);
}

#[test]
fn a_call_that_waits_may_count_once_for_each_attempt_whose_reply_is_lost() {
    play(Topology::Sentinel, 10_390);
}

#[test]
fn a_denial_may_come_from_before_a_reset_that_is_on_its_way() {
    play(Topology::Cluster, 13_145);
}

#[test]
fn a_call_whose_reply_is_lost_may_be_denied_by_an_override_that_closes_its_limit() {
    play(Topology::Cluster, 27_666);
}

#[test]
fn a_call_that_the_old_primary_admitted_may_be_settled_on_the_new_one() {
    play(Topology::Sentinel, 30_109);
}

#[test]
fn a_call_that_waits_is_not_woken_by_what_it_puts_back() {
    play(Topology::Cluster, 162);
}

#[test]
fn a_call_gets_a_denial_from_the_cache_while_one_that_waits_asks_again() {
    play(Topology::Cluster, 100_009);
}

#[test]
fn the_first_call_after_a_master_was_replaced_finds_the_new_one() {
    play(Topology::Cluster, 111_163);
}

#[test]
fn a_call_that_waits_by_the_default_for_outages_may_count_once_for_each_attempt() {
    play(Topology::Server, 114_465);
}

#[test]
fn a_call_that_one_slot_denies_may_ask_again_after_a_reset_of_the_other() {
    play(Topology::Cluster, 202_886);
}

#[test]
fn a_report_about_a_paused_call_takes_one_deadline() {
    play(Topology::Server, 86);
}

#[test]
fn a_call_that_waits_may_be_counted_before_a_pause_and_denied_after_it() {
    play(Topology::Server, 2_843);
}

#[test]
fn a_process_that_is_killed_twice_is_started_once() {
    play(Topology::Server, 205_035);
}

#[test]
fn all_parts_of_a_call_find_the_new_master() {
    play(Topology::Cluster, 606_290);
}

#[test]
fn a_call_that_is_tried_may_be_on_its_way_while_a_pause_is_stored() {
    play(Topology::Server, 7_780);
}
