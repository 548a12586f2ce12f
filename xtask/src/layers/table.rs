//! The layers of each crate. To add a module, name it in a layer here; `cargo xtask layers` prints these tables.

/// A crate whose imports are checked.
pub(super) struct CrateLayers {
    /// The name of its folder.
    pub(super) name: &'static str,
    /// Its root, from the root of the workspace.
    pub(super) root: &'static str,
    /// What the root may contain.
    pub(super) root_role: RootRole,
    /// Highest first: a module imports from its own layer and from those below. Without layers, only import circles are
    /// refused.
    pub(super) layers: &'static [Layer],
}

/// What the root of a crate may contain.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum RootRole {
    /// Modules, re-exports and documentation, nothing else.
    Facade,
    /// Code that connects the layers.
    Wiring,
}

/// Modules of the root of a crate that may import each other.
pub(super) struct Layer {
    pub(super) name: &'static str,
    pub(super) purpose: &'static str,
    pub(super) modules: &'static [&'static str],
}

/// All crates whose imports are checked.
pub(super) const CRATES: &[CrateLayers] = &[
    CrateLayers { name: "rules", root: "rules/src/lib.rs", root_role: RootRole::Facade, layers: RULES },
    CrateLayers { name: "lua", root: "lua/src/lib.rs", root_role: RootRole::Wiring, layers: &[] },
    CrateLayers { name: "macros", root: "macros/src/lib.rs", root_role: RootRole::Wiring, layers: MACROS },
    CrateLayers { name: "runtime", root: "runtime/src/lib.rs", root_role: RootRole::Facade, layers: RUNTIME },
    CrateLayers { name: "cli", root: "cli/src/main.rs", root_role: RootRole::Wiring, layers: CLI },
    CrateLayers { name: "pictures", root: "pictures/src/main.rs", root_role: RootRole::Wiring, layers: &[] },
    CrateLayers { name: "xtask", root: "xtask/src/main.rs", root_role: RootRole::Wiring, layers: &[] },
];

const RULES: &[Layer] = &[
    Layer { name: "overriding", purpose: "changes to the rules of a running policy", modules: &["overriding"] },
    Layer { name: "validate", purpose: "whether rules and bans are sound", modules: &["validate"] },
    Layer {
        name: "text",
        purpose: "rules as people write them, in one text or in arguments, and as clients read them",
        modules: &["text", "arguments", "words_for_clients"],
    },
    Layer {
        name: "rule",
        purpose: "what a policy consists of",
        modules: &["rule", "algorithm", "bucket", "cron", "ban", "outage"],
    },
    Layer {
        name: "template",
        purpose: "the text of keys and messages",
        modules: &["counted_subject", "fixed_text", "template"],
    },
    Layer {
        name: "base",
        purpose: "what every layer uses",
        modules: &["alphabet", "costs", "duration", "error", "limits", "nearest", "synonym"],
    },
];

const RUNTIME: &[Layer] = &[
    Layer { name: "guide", purpose: "pages of the documentation, without code", modules: &["guide"] },
    Layer { name: "testing", purpose: "clocks for the tests of users", modules: &["testing"] },
    Layer { name: "__private", purpose: "what expansions of the attribute call", modules: &["__private"] },
    Layer { name: "web", purpose: "clients and responses of web servers", modules: &["web"] },
    Layer { name: "simulation", purpose: "a policy on a trace of calls", modules: &["simulation"] },
    Layer { name: "admin", purpose: "the policies of a fleet, for tools", modules: &["admin"] },
    Layer { name: "limiter", purpose: "asking: checks, wait queue, denial cache, overrides", modules: &["limiter"] },
    Layer { name: "config", purpose: "limits from a file", modules: &["config"] },
    Layer { name: "store", purpose: "where tallies are kept: memory, Redis", modules: &["store"] },
    Layer { name: "context", purpose: "what a call knows beside its arguments", modules: &["context"] },
    Layer { name: "decision", purpose: "the answer: permit, denial, rejection", modules: &["decision"] },
    Layer { name: "policy", purpose: "what to enforce", modules: &["policy"] },
    Layer { name: "subject", purpose: "what is counted: keys, escaping, filters", modules: &["subject"] },
    Layer { name: "observe", purpose: "log, metrics and spans", modules: &["observe"] },
    Layer {
        name: "base",
        purpose: "what every layer uses",
        modules: &["clock", "error", "micros", "request_pattern", "sweeper"],
    },
];

const CLI: &[Layer] = &[
    Layer { name: "arguments", purpose: "the words of the command line", modules: &["arguments"] },
    Layer { name: "commands", purpose: "the commands, one file each", modules: &["commands"] },
    Layer { name: "subject", purpose: "who is meant", modules: &["subject"] },
    Layer { name: "fleet", purpose: "the policies that are listed", modules: &["fleet", "varying"] },
    Layer {
        name: "server and terminal",
        purpose: "the connection, what is asked, and what is shown",
        modules: &["connection", "confirmation", "overrides", "progress", "screen"],
    },
    Layer { name: "output", purpose: "what a command prints", modules: &["output"] },
    Layer {
        name: "base",
        purpose: "what every layer uses",
        modules: &["duration", "failure", "number", "spelling", "table"],
    },
];

const MACROS: &[Layer] = &[
    Layer { name: "trial", purpose: "runs the pipeline on inputs of a fuzzer", modules: &["trial"] },
    Layer { name: "pipeline", purpose: "runs the stages in order", modules: &["pipeline"] },
    Layer { name: "expand", purpose: "the model becomes tokens", modules: &["expand"] },
    Layer { name: "validate", purpose: "reports what is wrong in the model", modules: &["validate"] },
    Layer { name: "model", purpose: "what the attribute means", modules: &["model"] },
    Layer {
        name: "shape",
        purpose: "the function that is limited, and where code is added to it",
        modules: &["shape"],
    },
    Layer { name: "attr", purpose: "tokens become arguments", modules: &["attr"] },
    Layer { name: "template", purpose: "the text of keys and messages", modules: &["template"] },
    Layer { name: "base", purpose: "what every stage uses", modules: &["debug", "diagnostic"] },
];
