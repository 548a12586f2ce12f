//! The schemas of the bodies and the answers of the routes.

use utoipa::openapi::schema::{AdditionalProperties, Schema, SchemaType, Type};
use utoipa::openapi::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Ref, RefOr};

/// The schema of the answer to a request that is not carried out.
pub(super) const MISTAKE: &str = "LimitMistake";

/// The types of members.
const TEXT: [Type; 1] = [Type::String];
const NUMBER: [Type; 1] = [Type::Integer];
const TEXT_OR_NULL: [Type; 2] = [Type::String, Type::Null];
const NUMBER_OR_NULL: [Type; 2] = [Type::Integer, Type::Null];
const FLAG: [Type; 1] = [Type::Boolean];
const FLAG_OR_NULL: [Type; 2] = [Type::Boolean, Type::Null];

const SHADOW: &str = "Whether calls run whatever is decided; `null` in memory, where only the calls know it.";

type Schemas = Vec<(&'static str, RefOr<Schema>)>;

pub(super) fn all() -> impl Iterator<Item = (&'static str, RefOr<Schema>)> {
    [policy(), state(), lists(), changes(), bodies()].into_iter().flatten()
}

pub(super) fn reference(name: &str) -> RefOr<Schema> {
    Ref::from_schema_name(name).into()
}

fn policy() -> Schemas {
    vec![
        ("LimitPolicy", listed_policy()),
        ("LimitSubject", subject()),
        ("LimitRule", rule()),
        ("LimitBan", ban()),
        ("LimitOverride", overriding()),
    ]
}

fn listed_policy() -> RefOr<Schema> {
    let key = "How the main subject is written: empty for all calls together, `null` if not known.";
    let counts = "The counts of plans of a file, by their names, if each call gives the count of a rule.";
    object([
        ("name", of(TEXT, "The name.")),
        ("key", of(TEXT_OR_NULL, key)),
        ("subjects", list(&reference("LimitSubject"), "The other subjects of a call.")),
        ("rules", list(&reference("LimitRule"), "The rules of the program, or of a file.")),
        ("ban", or_null(&reference("LimitBan"))),
        ("longest_pause_ms", of(NUMBER_OR_NULL, "How long a subject may be paused; `null` is not at all.")),
        ("prefetch_ms", of(NUMBER_OR_NULL, "How long calls are taken ahead.")),
        ("plans", plans(counts)),
        ("shadow", of(FLAG_OR_NULL, SHADOW)),
        ("version", of(TEXT, "The version of the library that has listed it.")),
        ("seen", of(NUMBER, "When it was listed, in seconds since 1970.")),
        ("overrides", list(&reference("LimitOverride"), "What is in force instead.")),
    ])
}

fn subject() -> RefOr<Schema> {
    object([
        ("label", of(TEXT_OR_NULL, "The label; `null` is the main subject.")),
        ("key", of(TEXT_OR_NULL, "How it is written, if that is known.")),
    ])
}

fn rule() -> RefOr<Schema> {
    with_unit(object([
        ("position", of(NUMBER, "The position, from 0.")),
        ("name", of(TEXT_OR_NULL, "The name.")),
        ("rule", of(TEXT, "The rule, like `10 per 1d as daily`.")),
        ("label", of(TEXT_OR_NULL, "The label of the subject that it counts; `null` is the main one.")),
    ]))
}

fn ban() -> RefOr<Schema> {
    object([
        ("denials", of(NUMBER, "After how many denials.")),
        ("within_ms", of(NUMBER, "Within how long.")),
        ("duration_ms", of(NUMBER, "For how long.")),
    ])
}

fn overriding() -> RefOr<Schema> {
    let replaced = "The name or the position of the rule that is replaced; `null` is all rules.";
    let rule = object([
        ("replaces", of([Type::String, Type::Integer, Type::Null], replaced)),
        ("rule", of(TEXT, "The rule, like `50 per 1d`.")),
    ]);
    let rules = "The rules that decide; `null` if they could not be read, and then the end is not known.";
    let schema = object([
        ("policy", of(TEXT, "The name of the policy.")),
        ("label", of(TEXT_OR_NULL, "The label of the subject; `null` is the main one.")),
        ("subject", of(TEXT_OR_NULL, "The one subject that it is for; `null` is all.")),
        ("rules", or_null(&list(&rule, rules))),
        ("expires_in_ms", of(NUMBER_OR_NULL, "How long it still holds; `null` is until it is cleared.")),
    ]);
    with_optional(schema, "shadow", of(FLAG, "Whether calls run whatever is decided, if the override says it."))
}

fn state() -> Schemas {
    let denied = with_unit(object([
        ("kind", of(TEXT, "Why, as in rejections.")),
        ("rule", of(NUMBER_OR_NULL, "The position of the rule that denies it.")),
        ("retry_after_ms", of(NUMBER_OR_NULL, "For how long; `null` if waiting does not help.")),
    ]));
    let denied = with_optional(denied, "operator", of(TEXT, "Who has paused the subject, if an operator has."));
    let denied =
        with_optional(denied, "field", of(TEXT, "The field of an answer that asked for the pause, if one did."));
    let other = object([("label", of(TEXT, "The label.")), ("subject", of(TEXT, "The subject."))]);
    vec![
        (
            "LimitState",
            object([
                ("policy", of(TEXT, "The name of the policy.")),
                ("subject", of(TEXT_OR_NULL, "The main subject; `null` if it was not named.")),
                ("others", list(&other, "The other subjects.")),
                (
                    "missing",
                    list(&reference("LimitSubject"), "Subjects that were not named; their rules are left out."),
                ),
                (
                    "admitted",
                    of(FLAG_OR_NULL, "Whether a call would be admitted; `null` if what is known does not tell."),
                ),
                ("denied", or_null(&denied)),
                ("prefetch_ms", of(NUMBER_OR_NULL, "How long calls are taken ahead.")),
                ("shadow", of(FLAG_OR_NULL, SHADOW)),
                ("rules", list(&reference("LimitRuleState"), "Where each rule stands.")),
                ("overrides", list(&reference("LimitOverride"), "What is in force for these subjects.")),
            ]),
        ),
        (
            "LimitRuleState",
            with_unit(object([
                ("position", of(NUMBER, "The position, from 0.")),
                ("name", of(TEXT_OR_NULL, "The name.")),
                ("rule", of(TEXT, "The rule, like `1 per 1m`.")),
                ("limit", of(NUMBER_OR_NULL, "The count; `null` if each call gives it.")),
                ("used", of(NUMBER_OR_NULL, "How much is used.")),
                ("remaining", of(NUMBER_OR_NULL, "How much is left.")),
                ("concurrent", of(NUMBER_OR_NULL, "How many concurrent calls there are, if the rule limits these.")),
                ("reset_ms", of(NUMBER_OR_NULL, "When nothing of it is used any more.")),
                ("shadow", of(FLAG, "Whether the rule is tried out, and denies nothing.")),
            ])),
        ),
    ]
}

fn lists() -> Schemas {
    let unreadable = object([("name", of(TEXT, "The name.")), ("reason", of(TEXT, "Why it cannot be read."))]);
    let banned = object([
        ("policy", of(TEXT, "The name of the policy.")),
        ("subject", of(TEXT, "The subject.")),
        ("retry_after_ms", of(NUMBER_OR_NULL, "How long its calls are denied; `null` if waiting does not help.")),
    ]);
    vec![
        (
            "LimitPolicies",
            object([
                ("policies", list(&reference("LimitPolicy"), "The policies, by their names.")),
                ("unreadable", list(&unreadable, "What another version has listed.")),
            ]),
        ),
        (
            "LimitBans",
            object([
                ("bans", list(&banned, "Some of the subjects that are banned.")),
                ("subjects", of(NUMBER, "How many subjects were looked at.")),
                ("next", of(TEXT_OR_NULL, "The `from` of the next page; `null` on the last one.")),
            ]),
        ),
        ("LimitOverrides", object([("overrides", list(&reference("LimitOverride"), "All overrides."))])),
    ]
}

fn changes() -> Schemas {
    let policy = || ("policy", of(TEXT, "The name of the policy."));
    let one = || or_null(&reference("LimitOverride"));
    let traced = || ("trace_ms", of(NUMBER_OR_NULL, "How long a trace in memory may deny them; `null` is no trace."));
    vec![
        ("LimitReset", object([policy(), ("reset", list(&of(TEXT, "A subject."), "Who starts again.")), traced()])),
        (
            "LimitBanned",
            object([policy(), ("banned", of(TEXT, "The subject.")), ("duration_ms", of(NUMBER, "For how long."))]),
        ),
        (
            "LimitUnbanned",
            object([policy(), ("unbanned", list(&of(TEXT, "A subject."), "Who is not banned.")), traced()]),
        ),
        (
            "LimitPaused",
            object([
                policy(),
                ("paused", of(TEXT, "The subject.")),
                ("duration_ms", of(NUMBER, "For how long: longer than asked for, if a longer pause holds.")),
            ]),
        ),
        ("LimitResumed", object([policy(), ("resumed", of(TEXT, "The subject."))])),
        ("LimitOverrideFound", object([("override", one())])),
        ("LimitOverrideSet", object([("set", one()), ("replaced", one())])),
        ("LimitOverrideCleared", object([("cleared", one())])),
        (
            MISTAKE,
            object([
                ("type", of(TEXT, "The problem type.")),
                ("title", of(TEXT, "The status in words.")),
                ("status", of(NUMBER, "The status, again.")),
                ("detail", of(TEXT, "What is wrong, and the remedy.")),
            ]),
        ),
    ]
}

fn bodies() -> Schemas {
    let duration = "For how long, like `10m`; for the duration of the policy's ban unless it is given.";
    let rules = "The rules, like `100 per 1h, 1000 per 1d`, or `daily = 50 per 1d` in place of one of them. They may be `null` \
                 beside `shadow`.";
    let shadow = "`true` puts the whole policy in shadow, so that calls run whatever is decided; `false` enforces it.";
    let time = "For how long, like `2h`; until it is cleared unless it is given.";
    vec![
        ("LimitBanBody", object_with([("duration", of(TEXT_OR_NULL, duration))], [])),
        ("LimitPauseBody", object([("duration", of(TEXT, "For how long, like `30s`."))])),
        (
            "LimitRulesBody",
            object_with(
                [
                    ("rules", of(TEXT_OR_NULL, rules)),
                    ("shadow", of(FLAG_OR_NULL, shadow)),
                    ("for", of(TEXT_OR_NULL, time)),
                ],
                ["rules"],
            ),
        ),
    ]
}

/// Adds the unit to the schema of what is written about a rule.
fn with_unit(schema: RefOr<Schema>) -> RefOr<Schema> {
    with_optional(schema, "unit", of(TEXT, "What the rule counts, like `tokens`, if it does not count calls."))
}

/// Returns the schema of an object that may have one more member.
fn with_optional(mut schema: RefOr<Schema>, name: &str, member: RefOr<Schema>) -> RefOr<Schema> {
    if let RefOr::T(Schema::Object(object)) = &mut schema {
        object.properties.insert(name.to_owned(), member);
    }
    schema
}

/// An object that has all these members, and no others.
fn object<const N: usize>(members: [(&str, RefOr<Schema>); N]) -> RefOr<Schema> {
    let names = members.each_ref().map(|(name, _)| *name);
    object_with(members, names)
}

fn object_with<const N: usize, const M: usize>(
    members: [(&str, RefOr<Schema>); N],
    required: [&str; M],
) -> RefOr<Schema> {
    let object = ObjectBuilder::new().additional_properties(Some(AdditionalProperties::FreeForm(false)));
    let object = members.into_iter().fold(object, |object, (name, schema)| object.property(name, schema));
    required.into_iter().fold(object, ObjectBuilder::required).into()
}

/// An object whose members are numbers, by any names.
fn plans(description: &str) -> RefOr<Schema> {
    let by_unit = ObjectBuilder::new().schema_type(Type::Object).description(Some("The counts by the names of units."));
    let by_unit = by_unit.additional_properties(Some(of(NUMBER, "The count.")));
    let counts = OneOfBuilder::new().item(of(NUMBER, "The count.")).item(by_unit);
    let object = ObjectBuilder::new().schema_type(Type::Object).description(Some(description));
    object.additional_properties(Some(Schema::from(counts))).into()
}

fn list(items: &RefOr<Schema>, description: &str) -> RefOr<Schema> {
    ArrayBuilder::new().items(items.clone()).description(Some(description)).into()
}

fn or_null(schema: &RefOr<Schema>) -> RefOr<Schema> {
    let null = ObjectBuilder::new().schema_type(Type::Null);
    OneOfBuilder::new().schema_type(SchemaType::AnyValue).item(schema.clone()).item(null).into()
}

fn of<const N: usize>(types: [Type; N], description: &str) -> RefOr<Schema> {
    let types = match types.as_slice() {
        [only] => only.clone().into(),
        _ => types.into_iter().collect::<SchemaType>(),
    };
    ObjectBuilder::new().schema_type(types).description(Some(description)).into()
}
