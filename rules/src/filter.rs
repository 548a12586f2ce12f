//! Filters: changes to a value before it is put into a text.

use std::fmt;

use crate::suggestion::{nearest, remedy};

/// A change to a value before it is put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Shows the value by `Debug` in place of `Display`.
    Debug,
    /// Turns the value into lower case.
    Lower,
    /// Removes the white space around the value.
    Trim,
    /// Replaces the value by a digest.
    Hash,
    /// Replaces an address by its network.
    Subnet(SubnetBits),
}

/// The lengths of networks, in bits of their addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubnetBits {
    /// Bits of an IPv4 address: 32 for the whole address.
    pub ipv4: u8,
    /// Bits of an IPv6 address: 128 for the whole address.
    pub ipv6: u8,
}

impl SubnetBits {
    /// The lengths of `subnet` without arguments: a whole IPv4 address, and the /64 of IPv6, usually of one customer.
    pub const DEFAULT: Self = Self { ipv4: 32, ipv6: 64 };
}

const FILTERS: [Filter; 5] =
    [Filter::Debug, Filter::Lower, Filter::Trim, Filter::Hash, Filter::Subnet(SubnetBits::DEFAULT)];

impl Filter {
    pub(crate) fn parse(text: &str, placeholder: &str) -> Result<Self, String> {
        let (name, arguments) = match text.split_once('(') {
            Some((name, arguments)) => (name.trim_end(), Some(arguments)),
            None => (text, None),
        };
        let found = FILTERS.into_iter().find(|known| known.name() == name);
        match (found.ok_or_else(|| unknown(name, placeholder))?, arguments) {
            (filter, None) => Ok(filter),
            (Self::Subnet(_), Some(arguments)) => {
                let bits = SubnetBits::parse(arguments).map_err(|mistake| format!("`{{{placeholder}}}`: {mistake}"))?;
                Ok(Self::Subnet(bits))
            }
            (_, Some(_)) => {
                Err(format!("`{{{placeholder}}}`: the filter `{name}` takes no argument; write just `{name}`"))
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Lower => "lower",
            Self::Trim => "trim",
            Self::Hash => "hash",
            Self::Subnet(_) => "subnet",
        }
    }

    /// Returns the filter's place in their order: the value becomes text, is cleaned, cut to its network, and hashed.
    fn stage(self) -> u8 {
        match self {
            Self::Debug => 0,
            Self::Lower | Self::Trim => 1,
            Self::Subnet(_) => 2,
            Self::Hash => 3,
        }
    }

    /// Whether two values that this filter makes equal are also equal by the other filter.
    pub(crate) fn determines(self, other: Self) -> bool {
        match (self, other) {
            (Self::Subnet(own), Self::Subnet(other)) => own.ipv4 >= other.ipv4 && own.ipv6 >= other.ipv6,
            _ => self == other,
        }
    }
}

/// Writes the filter as it stands after a `:`.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::Subnet(bits) if *bits == SubnetBits::DEFAULT => Ok(()),
            Self::Subnet(SubnetBits { ipv4, ipv6 }) if *ipv6 == SubnetBits::DEFAULT.ipv6 => write!(f, "({ipv4})"),
            Self::Subnet(SubnetBits { ipv4, ipv6 }) => write!(f, "({ipv4}, {ipv6})"),
            _ => Ok(()),
        }
    }
}

impl SubnetBits {
    /// Reads the arguments after `subnet(`.
    fn parse(arguments: &str) -> Result<Self, String> {
        let numbers = arguments.trim_end().strip_suffix(')').map(|numbers| numbers.split(',').collect::<Vec<_>>());
        let (ipv4, ipv6) = match numbers.as_deref() {
            Some([ipv4]) => (number(ipv4), Some(Self::DEFAULT.ipv6.into())),
            Some([ipv4, ipv6]) => (number(ipv4), number(ipv6)),
            _ => (None, None),
        };
        let (ipv4, ipv6) = ipv4.zip(ipv6).ok_or(
            "`subnet` takes the bits of IPv4 networks and those of IPv6 networks, like `subnet(24)` or `subnet(24, 56)`",
        )?;
        let within = |bits, most: u8| u8::try_from(bits).ok().filter(|bits| (1..=most).contains(bits));
        Ok(Self {
            ipv4: within(ipv4, 32).ok_or("`subnet` takes from 1 to 32 bits of IPv4 addresses, like `subnet(24)`")?,
            ipv6: within(ipv6, 128)
                .ok_or("`subnet` takes from 1 to 128 bits of IPv6 addresses, like `subnet(24, 56)`")?,
        })
    }
}

/// Reads a number that consists of digits.
fn number(text: &str) -> Option<u64> {
    let digits = text.trim();
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

fn unknown(name: &str, placeholder: &str) -> String {
    let known = FILTERS.map(Filter::name);
    let remedy = remedy(nearest(name, known), "the filters are", &known);
    match name {
        "" => format!("`{{{placeholder}}}` has no filter after its `:`; {remedy}"),
        _ => format!("`{{{placeholder}}}` has the unknown filter `{name}`; {remedy}"),
    }
}

/// Refuses a filter that is repeated or follows a filter of a later stage.
pub(crate) fn check_order(placeholder: &str, filters: &[Filter]) -> Result<(), String> {
    let mut ordered: Vec<Filter> = Vec::new();
    let mut mistake = None;
    for &filter in filters {
        let name = filter.name();
        if ordered.iter().any(|earlier| earlier.name() == name) {
            mistake.get_or_insert_with(|| format!("has the filter `{name}` twice"));
            continue;
        }
        if let Some(later) = ordered.iter().find(|earlier| earlier.stage() > filter.stage()) {
            mistake.get_or_insert_with(|| format!("applies `{name}` to the result of `{}`", later.name()));
        }
        ordered.push(filter);
    }
    let Some(mistake) = mistake else { return Ok(()) };
    ordered.sort_by_key(|filter| filter.stage());
    let value = placeholder.split(':').next().unwrap_or_default().trim();
    let names: Vec<_> = ordered.iter().map(Filter::to_string).collect();
    Err(format!("`{{{placeholder}}}` {mistake}; write `{{{value}:{}}}`", names.join(":")))
}
