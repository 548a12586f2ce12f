//! The layers of each crate. To add a module, name it in a layer here; `cargo xtask layers` prints these tables.

/// A crate whose imports are checked.
pub(super) struct CrateLayers {
    /// Its file, from the root of the workspace.
    pub(super) root: &'static str,
    pub(super) kind: Root,
    /// Highest first: a module imports from its own layer and from those below. Without layers, only circles are refused.
    pub(super) layers: &'static [Layer],
}

/// What the root of a crate may contain.
#[derive(PartialEq)]
pub(super) enum Root {
    /// Modules, re-exports and documentation, nothing else.
    Facade,
    /// Code that connects the layers.
    Wiring,
}

/// Modules of the root of a crate that may import each other, and what they are for.
type Layer = (&'static str, &'static str);

/// All crates whose imports are checked.
pub(super) const CRATES: &[CrateLayers] = &[
    CrateLayers { root: "rules/src/lib.rs", kind: Root::Facade, layers: RULES },
    CrateLayers { root: "lua/src/lib.rs", kind: Root::Wiring, layers: &[] },
    CrateLayers { root: "macros/src/lib.rs", kind: Root::Wiring, layers: MACROS },
    CrateLayers { root: "runtime/src/lib.rs", kind: Root::Facade, layers: RUNTIME },
    CrateLayers { root: "cli/src/main.rs", kind: Root::Wiring, layers: CLI },
    CrateLayers { root: "pictures/src/main.rs", kind: Root::Wiring, layers: &[] },
    CrateLayers { root: "world/src/lib.rs", kind: Root::Facade, layers: WORLD },
    CrateLayers { root: "xtask/src/main.rs", kind: Root::Wiring, layers: &[] },
];

const RULES: &[Layer] = &[
    ("overriding", "changes to the rules of a running policy"),
    ("validate", "whether rules and bans are sound"),
    (
        "text arguments words_for_clients",
        "rules as people write them, in one text or in arguments, and as clients read them",
    ),
    ("rule algorithm cron ban outage", "what a policy consists of"),
    ("counted_subject fixed_text template", "the text of keys and messages"),
    ("alphabet duration error limits suggestion", "what every layer uses"),
];

const RUNTIME: &[Layer] = &[
    ("guide", "pages of the documentation, without code"),
    ("testing", "clocks for the tests of users"),
    ("__private", "what expansions of the attribute call"),
    ("web", "clients and responses of web servers"),
    ("simulation", "a policy on a trace of calls"),
    ("admin", "the policies of a fleet, for tools"),
    ("limiter", "asking: checks, wait queue, denial cache, overrides"),
    ("config", "limits from a file"),
    ("store", "where tallies are kept: memory, Redis"),
    ("context", "what a call knows beside its arguments"),
    ("decision", "the answer: permit, denial, rejection"),
    ("call", "what a store decides: policy, subjects, options"),
    ("policy", "what to enforce"),
    ("subject", "what is counted: keys, escaping, filters"),
    ("observe", "log, metrics and spans"),
    ("clock error lock micros request_pattern sweeper system", "what every layer uses"),
];

const CLI: &[Layer] = &[
    ("arguments", "the words of the command line"),
    ("commands", "the commands, one file each"),
    ("subject", "who is meant"),
    ("fleet varying", "the policies that are listed"),
    ("connection confirmation overrides progress screen", "the connection, what is asked, and what is shown"),
    ("output", "what a command prints"),
    ("duration failure number spelling table", "what every layer uses"),
];

const MACROS: &[Layer] = &[
    ("trial", "runs the pipeline on inputs of a fuzzer"),
    ("pipeline", "runs the stages in order"),
    ("expand", "the model becomes tokens"),
    ("validate", "reports what is wrong in the model"),
    ("model", "what the attribute means"),
    ("shape", "the function that is limited, and where code is added to it"),
    ("attr", "tokens become arguments"),
    ("template", "the text of keys and messages"),
    ("debug diagnostic", "what every stage uses"),
];

const WORLD: &[Layer] = &[("server", "a Redis: bytes in, bytes out; knows no time and no network")];
