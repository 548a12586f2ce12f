//! A call as it is handed to a store, with complete subjects: borrowed or owned.

mod lease;
mod options;
mod slot;
mod tally_key;

use std::ops::{Deref, DerefMut};
use std::sync::Weak;
use std::{ptr, slice};

pub(crate) use self::lease::{Lease, LeaseName, Lender, OnlyLease, ReturnedLeases, StoredLease};
pub(crate) use self::options::{CallOptions, WaitLimit};
#[cfg(feature = "redis")]
pub(crate) use self::slot::{SLOTS, Slot, TAG_BYTES, TAG_MARK};
pub(crate) use self::tally_key::{PREFIX_BYTES, TallyId, TallyKey};
use crate::policy::{GroupCost, Policy, RuleGroup, SubjectCost};
use crate::subject::SubjectKey;
use crate::system::Instant;

/// One call to decide: every rule of every subject counts it, or none does.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) policy: &'a Policy,
    /// One subject for each rule group of the policy, in their order. A part of a call has only the subject of its
    /// group.
    pub(crate) subjects: &'a [SubjectKey],
    /// What the call costs on each subject, if the policy has units; empty otherwise.
    pub(crate) costs: &'a [SubjectCost],
    pub(crate) options: CallOptions,
    pub(crate) scope: Scope,
    pub(crate) awaited: Option<&'a Awaited>,
}

/// The caller of a call, and the deadline of its answer.
#[derive(Clone, Debug)]
pub(crate) struct Awaited {
    /// Alive while the caller awaits the answer that another task asks for; `None` if the caller itself asks.
    pub(crate) caller: Option<Weak<()>>,
    /// The deadline that several requests for this call share.
    pub(crate) until: Option<Instant>,
}

/// A call that owns its data, for queues, leases and refunds.
#[derive(Clone, Debug)]
pub(crate) struct OwnedCall {
    pub(crate) policy: Policy,
    pub(crate) subjects: SubjectKeys,
    costs: Box<[SubjectCost]>,
    pub(crate) options: CallOptions,
    scope: Scope,
    awaited: Option<Awaited>,
}

/// A call of one subject that asks only for the outcome.
#[derive(Clone, Copy)]
pub(crate) struct PlainCall<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) subject: &'a SubjectKey,
    pub(crate) cost: u64,
}

/// A call of one subject that may pay in a unit, too, and asks only for the outcome.
#[derive(Clone, Copy)]
pub(crate) struct UnitCall<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) subject: &'a SubjectKey,
    /// The cost in calls.
    pub(crate) cost: u64,
    /// The cost in the unit that the call names, and the group that counts it.
    pub(crate) named: Option<(&'a RuleGroup, u64)>,
}

impl<'a> UnitCall<'a> {
    #[inline]
    pub(crate) fn new(policy: &'a Policy, subject: &'a SubjectKey, cost: u64, named: Option<GroupCost>) -> Self {
        let counted = |named: GroupCost| Some((policy.groups().get(named.place())?, named.cost()));
        Self { policy, subject, cost, named: named.and_then(counted) }
    }

    /// What the call costs in the unit of this group of its policy.
    #[inline]
    fn cost_of(self, group: &RuleGroup) -> SubjectCost {
        match self.named {
            _ if group.unit.is_none() => SubjectCost::Calls,
            Some((named, cost)) if ptr::eq(named, group) => SubjectCost::Unit(cost),
            _ => SubjectCost::Later,
        }
    }

    /// What is charged of the call in this group of its policy.
    #[inline]
    pub(crate) fn charged_to(self, group: &RuleGroup) -> u64 {
        self.cost_of(group).charged(self.cost)
    }

    /// How much there has to be left for the call in this group of its policy.
    #[inline]
    pub(crate) fn needed_of(self, group: &RuleGroup) -> u64 {
        self.cost_of(group).needed(self.cost)
    }
}

impl<'a> PlainCall<'a> {
    /// Returns the call as `policy` decides it, without its subject: for the decision, which shows none.
    pub(crate) fn by(self, policy: &'a Policy) -> Call<'a> {
        Call::new(policy, &[], CallOptions { cost: self.cost, ..CallOptions::PLAIN })
    }
}

/// How much of a call is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All subjects of the call.
    Call,
    /// Some subjects of a call. For the others, this process decides by what it has taken ahead.
    Rest,
    /// The subject of the group with this index. The answers to all parts are combined.
    Part(usize),
    /// The main subject of a denied call: charges nothing, and counts the denial towards a ban.
    Denial,
}

impl<'a> Call<'a> {
    #[inline]
    pub(crate) fn new(policy: &'a Policy, subjects: &'a [SubjectKey], options: CallOptions) -> Self {
        Self { policy, subjects, costs: &[], options, scope: Scope::Call, awaited: None }
    }

    /// Returns the call with its costs in the units of the policy.
    pub(crate) fn with_costs(self, costs: &'a [SubjectCost]) -> Self {
        match costs {
            // On one subject, the call has one cost.
            [SubjectCost::Calls] => self,
            [SubjectCost::Unit(cost)] => Self { options: CallOptions { cost: *cost, ..self.options }, ..self },
            [SubjectCost::Later] => Self { costs, options: CallOptions { cost: 0, ..self.options }, ..self },
            costs => Self { costs, ..self },
        }
    }

    /// What the call costs in the unit of the group of the subject with this index.
    #[inline]
    pub(crate) fn cost_at(self, index: usize) -> u64 {
        self.costs.get(index).map_or(self.options.cost, |cost| cost.charged(self.options.cost))
    }

    /// What the call costs in the unit of the rule at this position.
    pub(crate) fn cost_for(self, position: usize) -> u64 {
        self.policy.group_of(position).map_or(0, |group| self.cost_at(group))
    }

    /// How much there has to be left for the call on the subject with this index.
    #[inline]
    pub(crate) fn needs_at(self, index: usize) -> u64 {
        self.costs.get(index).map_or(self.options.cost, |cost| cost.needed(self.options.cost))
    }

    /// How much there has to be left for the call under the rule at this position.
    pub(crate) fn needs_for(self, position: usize) -> u64 {
        self.policy.group_of(position).map_or(0, |group| self.needs_at(group))
    }

    pub(crate) fn pays_later(self, index: usize) -> bool {
        self.costs.get(index) == Some(&SubjectCost::Later)
    }

    /// Whether the call counts anywhere if it is admitted.
    #[inline]
    pub(crate) fn counts(self) -> bool {
        self.options.cost > 0 || self.costs.iter().any(|cost| matches!(cost, SubjectCost::Unit(1..)))
    }

    /// Returns the part of the call that takes leases; `None` if it takes none. Leases are given back whether somebody
    /// waits or not, so nobody awaits this part.
    pub(crate) fn leases(self) -> Option<Self> {
        let first = self.policy.counting_groups();
        let subjects = self.subjects.get(first..).filter(|subjects| !subjects.is_empty())?;
        let takes = self.options.lease.is_some() && !self.options.peek && self.options.cost > 0;
        takes.then_some(Self { subjects, costs: &[], scope: Scope::Part(first), awaited: None, ..self })
    }

    /// Returns the part of a whole call that stays counted after its end: all but the leases.
    pub(crate) fn counted(self) -> Self {
        let subjects = self.subjects.get(..self.policy.counting_groups()).unwrap_or(self.subjects);
        let costs = self.costs.get(..subjects.len()).unwrap_or(self.costs);
        let options = CallOptions { cost: self.options.cost, ..CallOptions::PLAIN };
        Self::new(self.policy, subjects, options).with_costs(costs)
    }

    /// Returns the part of the call on one of its subjects.
    pub(crate) fn part(self, index: usize) -> Self {
        let subjects = self.subjects.get(index..=index).unwrap_or_default();
        let options = CallOptions { cost: self.cost_at(index), ..self.options };
        let costs = self.costs.get(index..=index).filter(|_| self.pays_later(index)).unwrap_or_default();
        Self { subjects, costs, options, scope: Scope::Part(self.first_group() + index), ..self }
    }

    /// Returns the part of the call from one of its subjects to another.
    pub(crate) fn parts_between(self, first: usize, last: usize) -> Self {
        if first == last {
            return self.part(first);
        }
        if first == 0 && last + 1 == self.subjects.len() {
            return self;
        }
        let subjects = self.subjects.get(first..=last).unwrap_or_default();
        let costs = self.costs.get(first..=last).unwrap_or_default();
        Self { subjects, costs, scope: Scope::Part(self.first_group() + first), ..self }
    }

    /// The tallies that decide the call, in the order of the policy's groups.
    pub(crate) fn tally_ids(self) -> impl Iterator<Item = TallyId<'a>> + Clone {
        let groups = self.policy.groups().iter().skip(self.first_group());
        groups.zip(self.subjects).map(|(group, subject)| TallyId { group, subject })
    }

    /// The index of the group of its first subject.
    pub(crate) fn first_group(self) -> usize {
        match self.scope {
            Scope::Part(index) => index,
            Scope::Call | Scope::Rest | Scope::Denial => 0,
        }
    }

    /// Returns the parts of the call: one for each of its subjects.
    pub(crate) fn parts(self) -> impl Iterator<Item = Self> {
        (0..self.subjects.len()).map(move |index| self.part(index))
    }

    /// Returns the call that counts a denial of the main subject.
    pub(crate) fn as_denial(self) -> Option<Self> {
        let options = CallOptions { report: false, ..self.options };
        Some(Self { subjects: self.subjects.get(..1)?, costs: &[], scope: Scope::Denial, options, ..self })
    }

    /// Returns the pause that a script looks for before it decides the call; `None` if it looks for none. It can only look
    /// in the slot of the tallies of the subject that can be paused.
    #[inline]
    pub(crate) fn pause(self) -> Option<TallyId<'a>> {
        let group = self.policy.pause_group()?;
        if !self.options.heeds_pause() || self.scope == Scope::Denial {
            return None;
        }
        let paused = self.tally_ids().find(|id| id.group.label == group.label)?;
        Some(TallyId { group, subject: paused.subject })
    }

    /// Returns the leases of all subjects, to give them back.
    pub(crate) fn returned_leases(self, prefix: &str) -> Vec<ReturnedLeases> {
        let names: Vec<_> = self.options.lease.into_iter().collect();
        self.keys(prefix).map(|key| ReturnedLeases { key, names: names.clone() }).collect()
    }

    /// Whether nobody awaits the answer any more.
    pub(crate) fn is_abandoned(self) -> bool {
        let caller = self.awaited.and_then(|awaited| awaited.caller.as_ref());
        caller.is_some_and(|caller| caller.strong_count() == 0)
    }

    /// The deadline of the answer; `None` for the deadline of the policy, counted from now.
    pub(crate) fn until(self) -> Option<Instant> {
        self.awaited?.until
    }

    /// Returns the call as one that counts nothing.
    pub(crate) fn peeked(self) -> Self {
        Self { options: CallOptions { peek: true, ..self.options }, ..self }
    }

    /// Returns the call as a server decides it: by wider windows, where calls are taken ahead.
    pub(crate) fn stored(self) -> Self {
        // No `map_or`: rustc 1.95 crashes on it.
        match self.policy.stored() {
            Some(stored) => Self { policy: &stored.policy, ..self },
            None => self,
        }
    }

    pub(crate) fn groups(self) -> &'a [RuleGroup] {
        let first = self.first_group();
        self.policy.groups().get(first..first + self.subjects.len()).unwrap_or_default()
    }

    /// The number of rules that decide the call.
    pub(crate) fn rules(self) -> usize {
        self.groups().iter().map(|group| group.rules.len()).sum()
    }

    /// The place of its first rule, when the rules of the policy are counted group by group.
    pub(crate) fn first_place(self) -> usize {
        self.policy.first_place(self.first_group())
    }

    /// The keys of the tallies that decide the call, in the order of [`tally_ids`](Self::tally_ids).
    pub(crate) fn keys<'k>(self, prefix: &'k str) -> impl Iterator<Item = TallyKey> + Clone + use<'a, 'k> {
        self.tally_ids().map(move |id| id.key(prefix))
    }
}

impl OwnedCall {
    #[inline]
    pub(crate) fn new(call: Call<'_>) -> Self {
        let Call { policy, subjects, costs, options, scope, awaited } = call;
        let awaited = awaited.cloned();
        Self { policy: policy.clone(), subjects: subjects.into(), costs: costs.into(), options, scope, awaited }
    }

    pub(crate) fn as_call(&self) -> Call<'_> {
        let Self { policy, subjects, costs, options, scope, awaited } = self;
        Call { policy, subjects, costs, options: *options, scope: *scope, awaited: awaited.as_ref() }
    }
}

/// The subjects of a call that owns them, most often one.
#[derive(Clone, Debug)]
pub(crate) enum SubjectKeys {
    One(SubjectKey),
    Several(Box<[SubjectKey]>),
}

impl SubjectKeys {
    pub(crate) fn repeated(subject: SubjectKey, count: usize) -> Self {
        if count == 1 { Self::One(subject) } else { Self::Several(vec![subject; count].into()) }
    }
}

impl From<&[SubjectKey]> for SubjectKeys {
    fn from(subjects: &[SubjectKey]) -> Self {
        match subjects {
            [subject] => Self::One(*subject),
            several => Self::Several(several.into()),
        }
    }
}

impl Deref for SubjectKeys {
    type Target = [SubjectKey];

    fn deref(&self) -> &[SubjectKey] {
        match self {
            Self::One(subject) => slice::from_ref(subject),
            Self::Several(several) => several,
        }
    }
}

impl DerefMut for SubjectKeys {
    fn deref_mut(&mut self) -> &mut [SubjectKey] {
        match self {
            Self::One(subject) => slice::from_mut(subject),
            Self::Several(several) => several,
        }
    }
}

/// A number of calls, and what they cost together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Demand {
    pub(crate) calls: u64,
    pub(crate) cost: u64,
}

impl Demand {
    /// Returns what one call needs.
    pub(crate) fn of(options: CallOptions) -> Self {
        let cost = if options.peek { 0 } else { options.cost };
        Self { calls: cost.min(1), cost }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self { calls: self.calls.saturating_add(other.calls), cost: self.cost.saturating_add(other.cost) }
    }

    pub(crate) fn less(self, other: Self) -> Self {
        Self { calls: self.calls.saturating_sub(other.calls), cost: self.cost.saturating_sub(other.cost) }
    }
}
