//! Faults that are planted in the scripts on purpose, one line each: the world has to find them.

use crate::topology::Plant;

/// A fault.
pub struct Planted {
    /// Its name on the command line.
    pub name: &'static str,
    /// The text that it replaces.
    old: &'static str,
    new: &'static str,
}

impl Planted {
    /// Returns the scripts with this fault; `None` if no script has the text any more.
    #[must_use]
    pub fn plant(&self) -> Option<Plant> {
        Plant::replacing(self.old, self.new)
    }
}

/// All faults that are planted.
pub const ALL: &[Planted] = &[
    Planted {
        name: "a script that trusts a length",
        old: "if entries % 1 > 0 or entries > 524288 then",
        new: "if false then",
    },
    Planted { name: "a window that is a microsecond short", old: "span_0 - now", new: "span_0 - now - 1" },
    Planted {
        name: "a refund that gives back more than was charged",
        old: "taken = math.min(taken, own)",
        new: "taken = taken + 1",
    },
    Planted { name: "a concurrent call too many", old: "elseif held >= count then", new: "elseif held > count then" },
    Planted { name: "a denial that is charged", old: "if code == -1 and charging then", new: "if charging then" },
    Planted {
        name: "a unit that is charged although another denies",
        old: "if code == -1 and charging then",
        new: "if (code == -1 or units and code >= 0) and charging then",
    },
    Planted {
        name: "a tally that never expires",
        old: "if renews then call('PEXPIRE', name, (unpack('>s', policy, ttl_at))) end",
        new: "if renews then call('PERSIST', name) end",
    },
    Planted {
        name: "a fixed window with a call too many",
        old: "if amount + cost > count then room = cost > count and never or closes end",
        new: "if amount + cost > count + 1 then room = cost > count and never or closes end",
    },
    Planted { name: "a ban that is not kept", old: "since <= now + 128000 and now < ends then", new: "false then" },
    Planted { name: "a cost that is ignored", old: "local weight = math.min(cost, largest)", new: "local weight = 1" },
    Planted {
        name: "a peek that counts",
        old: "local charging = not peek and not denial and cost > 0",
        new: "local charging = not denial and cost > 0",
    },
    Planted {
        name: "a log that is forgotten early",
        old: "local is_over = last <= now - reach",
        new: "local is_over = last <= now - reach / 2",
    },
    Planted {
        name: "a second subject of windows that is not charged",
        old: "if renews_1 ~= nil and appended",
        new: "if false and appended",
    },
    Planted {
        name: "a second subject that is not charged",
        old: "for subject = 1, subjects do\n        local lease",
        new: "for subject = 1, 1 do\n        local lease",
    },
    Planted {
        name: "a bucket that fills too fast",
        old: "level = amount + (now - stamp) * count",
        new: "level = amount + (now - stamp) * (count + 1)",
    },
    Planted {
        name: "a duplicate that counts its cost",
        old: "local beside = count - (kind == 'd' and 1 or cost)",
        new: "local beside = count - cost - (kind == 'd' and 1 or 0)",
    },
    Planted {
        name: "a window that never ends",
        old: "if stamp + span <= now then stamp, amount = now, 0 end",
        new: "if stamp == 0 then stamp, amount = now, 0 end",
    },
    Planted {
        name: "a refund that removes nothing from a log",
        old: "if entries > 1 and admitted <= now and now < admitted + reach then",
        new: "if false then",
    },
    Planted {
        name: "leases that never expire",
        old: "if call('PTTL', name) < ttl / 2 then call('PEXPIRE', name, ttl) end",
        new: "",
    },
    Planted {
        name: "a pause that a shorter one shortens",
        old: "local lasts = math.max(length, math.min(left, longest))",
        new: "local lasts = length",
    },
    Planted {
        name: "a probe that does not give its place back",
        old: "elseif left < 0 and call(",
        new: "elseif length < 0 and left < 0 and call(",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_has_its_seed_in_the_table_that_the_check_plays() {
        for Planted { name, .. } in ALL {
            assert!(include_str!("../README.md").contains(&format!("\n| {name} | ")), "{name}");
        }
    }

    #[test]
    fn each_fault_replaces_a_text_that_a_script_has() {
        for planted in ALL {
            assert!(planted.plant().is_some(), "{}", planted.name);
        }
    }
}
