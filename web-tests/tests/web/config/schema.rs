//! The schema for editors accepts and refuses what the library does, as far as a schema can.

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;
use tallygate::config::Policies;

use super::accepted::{ACCEPTED, documented};
use super::mistakes::unmarked;
use super::refused::{Refused, Schema, refused_files};

const URL: &str = "file:///tallygate.schema.json";

/// The schema, compiled.
struct Checker {
    schemas: Schemas,
    index: SchemaIndex,
}

impl Checker {
    fn new() -> Self {
        let text = include_str!("../../../../docs/tallygate.schema.json");
        let mut compiler = Compiler::new();
        compiler.enable_format_assertions();
        compiler.add_resource(URL, serde_json::from_str(text).expect("JSON")).unwrap();
        let mut schemas = Schemas::new();
        let index = compiler.compile(URL, &mut schemas).unwrap();
        Self { schemas, index }
    }

    fn check(&self, text: &str) -> Result<(), String> {
        let table: toml::Table = text.parse().unwrap_or_else(|error| panic!("{text}\n{error}"));
        let value: Value = serde_json::to_value(table).unwrap();
        self.schemas.validate(&value, self.index).map_err(|error| error.to_string())
    }
}

#[test]
fn the_schema_accepts_every_file_that_the_library_accepts() {
    let checker = Checker::new();
    for text in ACCEPTED.map(str::to_owned).into_iter().chain(documented()) {
        checker.check(&text).unwrap_or_else(|error| panic!("{text}\n{error}"));
    }
}

#[test]
fn the_schema_refuses_every_mistake_that_it_can_see() {
    let checker = Checker::new();
    let differs = |case: &&Refused| {
        let (text, _) = unmarked(case.text);
        checker.check(&text).is_err() != (case.schema == Schema::Refuses)
    };
    let differing: Vec<_> = refused_files().filter(differs).map(|case| case.text).collect();
    assert!(differing.is_empty(), "{differing:#?}");
}

/// Texts of `x`, as many as that.
fn listed(number: usize, text: impl Fn(usize) -> String) -> String {
    (0..number).map(|number| format!("'{}'", text(number))).collect::<Vec<_>>().join(", ")
}

#[test]
fn the_schema_and_the_library_have_the_same_bounds() {
    let checker = Checker::new();
    let policies = |number: usize| {
        (0..number).map(|number| format!("[policy.p{number}]\nrules = ['1 per 1h']\n")).collect::<Vec<_>>().concat()
    };
    let requests = |lines: &str| format!("[policy.p]\n{lines}\nkey = '{{@ip}}'\nrules = ['1 per 1h']");
    let path = |number: usize| format!("/{number}");
    let cases: [(usize, &dyn Fn(usize) -> String); 9] = [
        (1_000, &policies),
        (256, &|length| format!("[policy.{}]\nrules = ['1 per 1h']", "x".repeat(length))),
        (32, &|number| {
            format!("[policy.p]\nrules = [{}]", listed(number, |number| format!("{0} per {0}h", number + 1)))
        }),
        (128, &|length| format!("[policy.p]\nrules = [{{ count = 1, per = '1h', name = '{}' }}]", "x".repeat(length))),
        (256, &|number| requests(&format!("match = {{ path = [{}] }}", listed(number, path)))),
        (256, &|number| requests(&format!("match = {{ path = '/*' }}\nexempt_paths = [{}]", listed(number, path)))),
        (4_096, &|length| format!("[policy.p]\nkey = '{}'\nrules = ['1 per 1h']", "x".repeat(length))),
        (4_096, &|length| format!("[policy.p]\nrules = [{{ count = 1, per = '1h', key = '{}' }}]", "x".repeat(length))),
        (256, &|number| format!("values = [{}]\n[end]", listed(number, |number| format!("v{number}")))),
    ];
    for (place, (most, file)) in cases.into_iter().enumerate() {
        let (allowed, refused) = (file(most), file(most + 1));
        let read = Policies::from_toml(&allowed).map(|policies| policies.names().count());
        assert!(read.is_ok(), "{place}: {read:?}");
        checker.check(&allowed).unwrap_or_else(|error| panic!("{place}: {error}"));
        assert!(Policies::from_toml(&refused).is_err(), "{place}");
        assert!(checker.check(&refused).is_err(), "{place}");
    }
}
