//! The policies of a world.

use std::fmt;
use std::time::Duration;

use tallygate::{Algorithm, Ban, OnOutage, Policy, Role, Rule, Schedule, TokenBucket, format_rules};

use super::partner::PartnerPlan;
use crate::engine::Chance;

/// By how much files divide counts at most.
pub(super) const LARGEST_DIVISOR: u64 = 3;

/// A policy that a world uses.
#[derive(Clone, Debug)]
pub struct PolicyPlan {
    /// Its name.
    pub name: String,
    /// The rules by the subject that they count.
    pub groups: Vec<Group>,
    /// What happens to its calls in an outage.
    pub on_outage: Option<OnOutage>,
    /// Its deadline, in microseconds.
    pub deadline_us: Option<u64>,
    /// When its subject is banned.
    pub ban: Option<Ban>,
    /// For how many microseconds its calls are taken ahead.
    pub prefetch_us: Option<u64>,
    /// To whom its admitted calls are sent, who can pause it.
    pub partner: Option<PartnerPlan>,
    /// Whether overrides close it now and then.
    pub may_close: bool,
    /// Whether files divide its counts now and then.
    pub may_be_in_files: bool,
}

/// The rules that count one unit on one subject of a call.
#[derive(Clone, Debug)]
pub struct Group {
    /// The label of the subject; the main subject has none.
    pub label: Option<&'static str>,
    /// The unit that the rules count; calls have none.
    pub unit: Option<&'static str>,
    /// The rules.
    pub rules: Vec<Rule>,
}

impl Group {
    /// The text of the subject with that number, which tells the group, too.
    #[must_use]
    pub fn subject(&self, number: usize) -> String {
        format!("{}{number}", self.label.unwrap_or("user"))
    }
}

impl PolicyPlan {
    /// Builds the policy; `None` if the library refuses it.
    #[must_use]
    pub fn build(&self) -> Option<Policy> {
        let mut builder = Policy::builder(self.name.clone());
        for group in &self.groups {
            for rule in &group.rules {
                builder = match group.label {
                    Some(label) => builder.rule_on(label, rule.clone()),
                    None => builder.rule(rule.clone()),
                };
            }
        }
        if let Some(on_outage) = self.on_outage {
            builder = builder.on_outage(on_outage);
        }
        if let Some(us) = self.deadline_us {
            builder = builder.deadline(Duration::from_micros(us));
        }
        if let Some(us) = self.prefetch_us {
            builder = builder.prefetch(Duration::from_micros(us));
        }
        if let Some(ban) = self.ban {
            builder = builder.ban(ban);
        }
        if let Some(partner) = &self.partner {
            builder = builder.longest_pause(Duration::from_micros(partner.longest_pause_us));
        }
        builder.build().ok()
    }

    /// What a settled call counts at least, if it is to count `used`: at most as much as a whole count that is in force.
    #[must_use]
    pub fn least_settled(&self, used: u64, rules: &[Rule]) -> u64 {
        let windows = rules.iter().filter(|rule| matches!(rule.algorithm(), Algorithm::SlidingWindow { .. }));
        let divisor = if self.may_be_in_files { LARGEST_DIVISOR } else { 1 };
        windows.map(|rule| rule.count().div_ceil(divisor)).max().map_or(used, |most| used.min(most))
    }

    /// The text of a file that divides its counts by that.
    #[must_use]
    pub fn file(&self, divisor: u64) -> String {
        let divided = |group: &Group, rule: &Rule| {
            let divided = Rule::sliding_window(rule.count().div_ceil(divisor), rule.per().unwrap_or_default());
            if let Some(unit) = group.unit { divided.counting(unit) } else { divided }
        };
        let rules = self.groups.iter().flat_map(|group| group.rules.iter().map(move |rule| divided(group, rule)));
        let rules = rules.map(|rule| format!("{:?}", rule.to_string()));
        format!("[policy.{}]\nrules = [{}]\n", self.name, rules.collect::<Vec<_>>().join(", "))
    }

    /// Whether all its rules are sliding windows on one subject.
    fn has_plain_rules(&self) -> bool {
        let is_plain =
            |rule: &Rule| rule.role() != Role::Duplicate && matches!(rule.algorithm(), Algorithm::SlidingWindow { .. });
        self.groups.iter().all(|group| group.label.is_none() && group.rules.iter().all(is_plain))
    }

    /// The rules on a subject as Redis checks them.
    #[must_use]
    pub fn stored(&self, group: &Group) -> Vec<Rule> {
        let ahead = self.prefetch_us.map(Duration::from_micros);
        let stored = |rule: &Rule| ahead.and_then(|ahead| rule.ahead(ahead)).unwrap_or_else(|| rule.clone());
        group.rules.iter().map(stored).collect()
    }

    /// Whether rules count units beside calls.
    #[must_use]
    pub fn has_units(&self) -> bool {
        self.groups.iter().any(|group| group.unit.is_some())
    }

    /// Whether rules count that unit.
    #[must_use]
    pub fn counts(&self, unit: &str) -> bool {
        self.groups.iter().any(|group| group.unit == Some(unit))
    }

    /// The units that rules count on the main subject.
    pub fn units_of_users(&self) -> impl Iterator<Item = &'static str> {
        self.groups.iter().filter(|group| group.label.is_none()).filter_map(|group| group.unit)
    }

    /// Whether its calls have a second subject.
    #[must_use]
    pub fn has_net(&self) -> bool {
        self.groups.iter().any(|group| group.label.is_some())
    }

    /// Whether its calls are made by the layer for clients.
    #[must_use]
    pub fn is_called_by_layer(&self) -> bool {
        self.partner.as_ref().is_some_and(|partner| partner.has_layer)
    }

    /// Whether it limits concurrent calls.
    #[must_use]
    pub fn has_leases(&self) -> bool {
        self.groups.iter().flat_map(|group| &group.rules).any(is_concurrency)
    }
}

/// Whether it is a limit on concurrent calls.
pub(crate) fn is_concurrency(rule: &Rule) -> bool {
    matches!(rule.algorithm(), Algorithm::Concurrency { .. })
}

pub(super) fn draw(seed: u64, horizon_us: u64) -> Vec<PolicyPlan> {
    let (mut chance, mut of_files) = (Chance::new(seed, "policies"), Chance::new(seed, "policies in files"));
    let number = chance.between(1, 3);
    let drawn = (0..number).filter_map(|number| draw_again(|| draw_one(&mut chance, number, horizon_us)));
    let mut policies: Vec<_> = drawn
        .map(|policy| PolicyPlan { may_be_in_files: of_files.happens(0.2) && policy.has_plain_rules(), ..policy })
        .collect();
    let mut chance = Chance::new(seed, "prefetch");
    if let Some(first) = policies.first_mut()
        && chance.happens(0.25)
        && let Some(ahead) = draw_again(|| draw_ahead(&mut chance, first, horizon_us))
    {
        let mut chance = Chance::new(seed, "subjects of prefetch");
        let several = chance.happens(0.4).then(|| with_users(&mut chance, &ahead, horizon_us)).flatten();
        *first = several.unwrap_or(ahead);
    }
    let (mut chance, mut of_bytes) =
        (Chance::new(seed, "units that are taken ahead"), Chance::new(seed, "bytes that are taken ahead"));
    for policy in policies.iter_mut().filter(|policy| policy.prefetch_us.is_some()) {
        if chance.happens(0.4)
            && let Some(with_tokens) = draw_again(|| with_unit_ahead(&mut chance, policy, "tokens", horizon_us))
        {
            *policy = with_tokens;
            if of_bytes.happens(0.4)
                && let Some(with_bytes) = draw_again(|| with_unit_ahead(&mut of_bytes, policy, "bytes", horizon_us))
            {
                *policy = with_bytes;
            }
        }
    }
    policies.extend(draw_paced(seed, horizon_us));
    let (mut chance, mut of_bytes) = (Chance::new(seed, "units"), Chance::new(seed, "bytes of policies"));
    for policy in policies.iter_mut().filter(|policy| policy.prefetch_us.is_none()) {
        if chance.happens(0.2)
            && let Some(with_tokens) = draw_again(|| with_unit(&mut chance, policy, "tokens", horizon_us))
        {
            *policy = with_tokens;
            if of_bytes.happens(0.5)
                && let Some(with_bytes) = draw_again(|| with_unit(&mut of_bytes, policy, "bytes", horizon_us))
            {
                *policy = with_bytes;
            }
        }
    }
    policies
}

/// Draws until the library does not refuse what is drawn.
fn draw_again(mut draw: impl FnMut() -> Option<PolicyPlan>) -> Option<PolicyPlan> {
    (0..50).find_map(|_| draw())
}

/// One world in four has a partner, and a policy that paces the calls to it.
fn draw_paced(seed: u64, horizon_us: u64) -> Option<PolicyPlan> {
    let mut chance = Chance::new(seed, "partner");
    if !chance.happens(0.25) {
        return None;
    }
    let partner = PartnerPlan::draw(&mut chance, horizon_us);
    draw_again(|| {
        let mut policy = draw_one(&mut chance, 9, horizon_us)?;
        if chance.happens(0.7) {
            // It may admit more than the partner does.
            let count = chance.between(partner.count.div_ceil(2), 3 * partner.count);
            policy.groups.first_mut()?.rules = vec![Rule::sliding_window(count, Duration::from_micros(partner.per_us))];
        }
        policy.may_be_in_files = policy.has_plain_rules() && chance.happens(0.2);
        // The layer takes over what the partner says is left for a rule of its count, which no checker knows.
        let mut rules = policy.groups.iter().flat_map(|group| &group.rules);
        let is_alike = policy.may_be_in_files || rules.any(|rule| rule.count() == partner.count);
        policy.partner = Some(PartnerPlan { has_layer: partner.has_layer && !is_alike, ..partner.clone() });
        if policy.is_called_by_layer() {
            // The layer does not say who has admitted a call.
            policy.on_outage = Some(OnOutage::Deny);
        }
        policy.build().map(|_| policy)
    })
}

/// Adds rules that count a unit. The library may refuse them.
fn with_unit(chance: &mut Chance, other: &PolicyPlan, unit: &'static str, horizon_us: u64) -> Option<PolicyPlan> {
    let mut policy = other.clone();
    for label in other.groups.iter().filter(|group| group.unit.is_none()).map(|group| group.label) {
        if label.is_some() && chance.happens(0.5) {
            continue;
        }
        let rules = (0..chance.between(1, 2)).map(|_| {
            let (count, per) = (chance.spread(20, 4_000), draw_window(chance, horizon_us));
            match chance.between(0, 7) {
                0..=3 => Rule::sliding_window(count, per),
                4 => Rule::fixed_window(count, per),
                5 => Rule::sliding_counter(count, per),
                6 => every(count, chance.pick(&[1, 2, 5, 10, 30])),
                _ => Rule::from_bucket(count, TokenBucket::new(per).with_capacity(chance.spread(20, 2 * count))),
            }
        });
        let rules = rules.map(|rule| rule.counting(unit)).collect();
        policy.groups.push(Group { label, unit: Some(unit), rules });
    }
    policy.may_be_in_files &= policy.has_plain_rules();
    policy.build().map(|_| policy)
}

/// Draws a policy whose calls are taken ahead, in place of that one. The library may refuse it.
fn draw_ahead(chance: &mut Chance, other: &PolicyPlan, horizon_us: u64) -> Option<PolicyPlan> {
    let ahead_us = chance.spread(10_000, 500_000);
    let rules = (0..chance.between(1, 2)).map(|_| draw_rule_ahead(chance, ahead_us, horizon_us, (100, 600)));
    let policy = PolicyPlan {
        groups: vec![Group { label: None, unit: None, rules: rules.collect() }],
        prefetch_us: Some(ahead_us),
        may_be_in_files: false,
        ..other.clone()
    };
    policy.build().map(|_| policy)
}

/// Draws a rule whose calls are taken ahead, with a count between those two.
fn draw_rule_ahead(chance: &mut Chance, ahead_us: u64, horizon_us: u64, (fewest, most): (u64, u64)) -> Rule {
    let per = Duration::from_micros(chance.spread(10 * ahead_us, (horizon_us / 2).max(20 * ahead_us)));
    let count = chance.spread(fewest, most);
    match chance.between(0, 6) {
        0..=3 => Rule::sliding_window(count, per),
        4 => Rule::sliding_counter(count, per),
        5 => Rule::fixed_window(count, per),
        _ => Rule::from_bucket(count, TokenBucket::new(per).with_capacity(chance.spread(20, 2 * count))),
    }
}

/// Adds rules that count a unit of the busy subject, which are taken ahead, too. The library may refuse them.
fn with_unit_ahead(chance: &mut Chance, busy: &PolicyPlan, unit: &'static str, horizon_us: u64) -> Option<PolicyPlan> {
    let (ahead_us, mut policy) = (busy.prefetch_us?, busy.clone());
    let label = busy.groups.last()?.label;
    let rules = (0..chance.between(1, 2))
        .map(|_| draw_rule_ahead(chance, ahead_us, horizon_us, (2_000, 20_000)).counting(unit))
        .collect();
    policy.groups.push(Group { label, unit: Some(unit), rules });
    policy.build().map(|_| policy)
}

/// Adds users of a busy subject, who have too few calls to be taken ahead.
fn with_users(chance: &mut Chance, busy: &PolicyPlan, horizon_us: u64) -> Option<PolicyPlan> {
    let ahead_us = busy.prefetch_us?;
    let per = Duration::from_micros(chance.spread(10 * ahead_us, (horizon_us / 2).max(20 * ahead_us)));
    let mut rules = vec![Rule::sliding_window(chance.spread(5, 90), per)];
    if chance.happens(0.3) {
        rules.push(Rule::concurrency(chance.between(1, 4), Duration::from_secs(chance.spread(1, 20))));
    }
    let busy_group = busy.groups.iter().map(|group| Group { label: Some("net"), ..group.clone() });
    let groups = [Group { label: None, unit: None, rules }].into_iter().chain(busy_group).collect();
    let policy = PolicyPlan { groups, ..busy.clone() };
    policy.build().map(|_| policy)
}

/// Draws a policy, which the library may refuse.
fn draw_one(chance: &mut Chance, number: u64, horizon_us: u64) -> Option<PolicyPlan> {
    let main = Group { label: None, unit: None, rules: draw_rules(chance, horizon_us, true) };
    let net = |rules| Group { label: Some("net"), unit: None, rules };
    let other = chance.happens(0.2).then(|| net(draw_rules(chance, horizon_us, false)));
    let ban = chance.happens(0.15).then(|| {
        let (within, duration) = (draw_window(chance, horizon_us), draw_window(chance, horizon_us));
        Ban::new(chance.between(2, 8), within, duration)
    });
    let policy = PolicyPlan {
        name: format!("p{number}"),
        groups: [Some(main), other].into_iter().flatten().collect(),
        on_outage: chance.pick(&[None, Some(OnOutage::Deny), Some(OnOutage::Local), Some(OnOutage::Allow)]),
        deadline_us: chance.happens(0.3).then(|| chance.spread(20_000, 800_000)),
        ban,
        prefetch_us: None,
        partner: None,
        may_close: chance.happens(0.15),
        may_be_in_files: false,
    };
    policy.build().map(|_| policy)
}

fn draw_rules(chance: &mut Chance, horizon_us: u64, is_main: bool) -> Vec<Rule> {
    let mut rules: Vec<Rule> = (0..chance.between(1, 2)).map(|_| draw_rule(chance, horizon_us)).collect();
    if is_main && chance.happens(0.15) {
        rules.push(Rule::duplicate(draw_window(chance, horizon_us / 4)));
    }
    if is_main && chance.happens(0.3) {
        let lease = Duration::from_secs(chance.spread(1, 20));
        rules.push(Rule::concurrency(chance.between(1, 4), lease));
    }
    rules
}

fn draw_rule(chance: &mut Chance, horizon_us: u64) -> Rule {
    let (count, per) = (chance.spread(1, 60), draw_window(chance, horizon_us));
    match chance.between(0, 9) {
        0..=4 => Rule::sliding_window(count, per),
        5 => Rule::sliding_counter(count, per),
        6 => Rule::fixed_window(count, per),
        7 => every(count, chance.pick(&[1, 2, 5, 10, 30])),
        _ => Rule::from_bucket(count, TokenBucket::new(per).with_capacity(chance.spread(1, 2 * count))),
    }
}

/// A rule that starts again at multiples of so many seconds.
fn every(count: u64, seconds: u64) -> Rule {
    match Schedule::parse(&format!("*/{seconds} * * * * *"), "UTC") {
        Ok(schedule) => Rule::cron(count, schedule),
        Err(_) => Rule::fixed_window(count, Duration::from_secs(seconds)),
    }
}

/// A window between 20 milliseconds and half of all the time.
fn draw_window(chance: &mut Chance, horizon_us: u64) -> Duration {
    Duration::from_micros(chance.spread(20_000, (horizon_us / 2).max(40_000)))
}

impl fmt::Display for PolicyPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        for group in &self.groups {
            write!(f, " [{}: {}]", group.label.unwrap_or("user"), format_rules(&group.rules))?;
        }
        write!(f, " on outage {:?}, deadline {:?}, ban {:?}", self.on_outage, self.deadline_us, self.ban)?;
        self.prefetch_us.map_or(Ok(()), |us| write!(f, ", {us} µs ahead"))?;
        self.partner.as_ref().map_or(Ok(()), |partner| write!(f, ", for {partner:?}"))
    }
}
