//! Replaces the policies of a file for requests if the feature `web` is off. A file that has one is mistaken.

#![allow(clippy::unused_self, reason = "there are none")]

use std::collections::BTreeMap;
use std::iter;
use std::sync::Arc;

use super::lines::Lines;
use super::plans::{ListedPlans, Plans};
use super::rules::PolicyParts;
use super::table::Table;
use crate::error::Mistake;
use crate::policy::{PlanCounts, Policy};

pub(super) use self::NoRequestLimits as RequestLimits;

#[derive(Default)]
pub(crate) struct NoRequestLimits {}

impl NoRequestLimits {
    pub(super) fn read(
        &mut self,
        _: PolicyParts<'_>,
        mut table: Table<'_>,
        _: &Arc<ListedPlans>,
        lines: &mut Lines<'_>,
    ) {
        if let Some(entry) = table.take("match") {
            let message =
                "`match` needs the feature `web` of tallygate; add it in Cargo.toml, like `features = [\"web\"]`";
            lines.report(entry.name.place, message);
        }
    }

    pub(super) fn policy(&self, _: &str) -> Option<Policy> {
        None
    }

    pub(super) fn open_policy(&self, _: &str) -> Option<&Policy> {
        None
    }

    pub(super) fn plan_counts(&self, _: &str) -> Option<BTreeMap<&str, PlanCounts>> {
        None
    }

    pub(super) fn policies(&self) -> impl Iterator<Item = &Policy> {
        iter::empty()
    }

    pub(super) fn plans(&self) -> impl Iterator<Item = &Plans> {
        iter::empty()
    }

    pub(super) fn have_plans(&self) -> bool {
        false
    }

    pub(super) fn check(&self, _: Option<&[String]>, _: &mut Lines<'_>) {}

    pub(super) fn unlisted_values(&self) -> Vec<Mistake> {
        Vec::new()
    }

    pub(super) fn unknown_values(&self, _: Option<&Self>) -> Vec<Mistake> {
        Vec::new()
    }
}
