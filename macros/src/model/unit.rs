//! The model of a unit that a call uses: tokens, bytes.

use syn::Expr;
use tallygate_rules::{CALLS, check_unit};

use super::rule::CALL_ARGUMENTS;
use crate::attr::{Amount, Argument, Arguments, UNIT_EXAMPLE, WrittenList};
use crate::diagnostic::{Diagnostics, SpanRange, Spanned};

/// `unit("tokens", cost = …, settle = …)`.
pub(crate) struct UnitModel {
    /// `None` if it could not be read.
    pub(crate) name: Option<Spanned<String>>,
    pub(crate) cost: Option<Amount>,
    pub(crate) settle: Option<UnitSettlement>,
    pub(crate) written: WrittenList,
}

/// Who says what a call has used.
pub(crate) enum UnitSettlement {
    /// `settle = |reply| reply.tokens()`.
    Function(Box<Expr>),
    /// `settle = metered`: what the call adds while it runs.
    Metered(SpanRange),
}

impl UnitModel {
    pub(super) fn read(argument: Argument, diagnostics: &mut Diagnostics) -> Self {
        let mut list = Arguments::open(argument, diagnostics);
        let is_named =
            !list.refuse(&["name"], "of a unit stands in front, without `name =`, like `unit(\"tokens\", cost = 3)`");
        list.refuse(
            &["count", "per", "key"],
            r#"belongs in a rule, like `rule(count = 10, per = "60s", unit = "tokens")`"#,
        );
        if !is_named {
            list.require_leading(format_args!("`unit` needs its name first, in quotes, like `{UNIT_EXAMPLE}`"));
        }
        let name = read_name(&mut list);
        let cost = list.amount("cost", ["cost = 3", "cost = request.max_tokens"]);
        let settle = list.function("settle", "settle = |reply| reply.tokens()").map(UnitSettlement::from_value);
        // The call has the names of the two, too, so they are taken before.
        list.refuse(&CALL_ARGUMENTS, "applies to the whole call; write it outside of the unit");
        Self { name, cost, settle, written: list.finish() }
    }

    pub(crate) fn name(&self) -> Option<&str> {
        Some(&self.name.as_ref()?.value)
    }

    pub(crate) fn is_metered(&self) -> bool {
        matches!(self.settle, Some(UnitSettlement::Metered(_)))
    }

    /// Returns the function of the result that says what a call has used.
    pub(crate) fn settle_function(&self) -> Option<&Expr> {
        match &self.settle {
            Some(UnitSettlement::Function(function)) => Some(function),
            Some(UnitSettlement::Metered(_)) | None => None,
        }
    }
}

impl UnitSettlement {
    pub(crate) fn span(&self) -> SpanRange {
        match self {
            Self::Function(function) => SpanRange::of_tokens(function),
            Self::Metered(span) => *span,
        }
    }

    fn from_value(value: Expr) -> Self {
        match &value {
            Expr::Path(path) if path.path.is_ident("metered") => Self::Metered(SpanRange::of_tokens(&value)),
            _ => Self::Function(Box::new(value)),
        }
    }
}

fn read_name(list: &mut Arguments<'_>) -> Option<Spanned<String>> {
    let name = Spanned::from(&list.take_leading()?);
    let mistake = match name.value.as_str() {
        CALLS => Some(format!(
            "`{CALLS}` are what a rule counts without a unit; write `cost` and `settle` outside of it, or another name"
        )),
        name => check_unit(name).err(),
    };
    if let Some(mistake) = mistake {
        list.diagnostics.report(name.span, mistake);
        return None;
    }
    Some(name)
}
