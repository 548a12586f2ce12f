//! `ACL`: users are made and changed.

use super::arguments::Arguments;
use super::flavour::Flavour;
use super::refusal::{Answer, Refusal};
use super::reply::Reply;
use super::session::Session;
use super::state::State;
use super::table;
use super::user::{Access, DEFAULT_USER, Scope, User};

pub(crate) fn acl(state: &mut State, session: &Session, arguments: &Arguments) -> Answer {
    match arguments.text(1).to_ascii_lowercase().as_str() {
        "whoami" => Ok(Reply::text(&session.user)),
        "users" => Ok(Reply::array(state.users.names().map(Reply::text))),
        "setuser" => set_user(state, arguments),
        "deluser" => {
            if (2..arguments.len()).any(|index| arguments.word(index) == DEFAULT_USER.as_bytes()) {
                return Err(Refusal::known("ERR The 'default' user cannot be removed"));
            }
            let names = (2..arguments.len()).map(|index| arguments.text(index));
            Ok(Reply::count(names.filter(|name| state.users.remove(name)).count()))
        }
        _ => Ok(Reply::Array(Vec::new())),
    }
}

const ALL_KEYS: &str = "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any \
    effect. Try 'resetkeys' to start with an empty list of patterns";
const ALL_CHANNELS: &str = "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not \
    have any effect. Try 'resetchannels' to start with an empty list of channels";

/// Applies all rules, or none.
fn set_user(state: &mut State, arguments: &Arguments) -> Answer {
    let name = arguments.text(2);
    let mut user = state.users.get_or_new(&name);
    for index in 3..arguments.len() {
        let rule = arguments.text(index);
        if rule.eq_ignore_ascii_case("reset") {
            user = state.users.blank();
            continue;
        }
        apply(state.flavour, &mut user, &rule)
            .map_err(|mistake| Refusal::new(format!("ERR Error in ACL SETUSER modifier '{rule}': {mistake}")))?;
    }
    state.users.put(&name, user);
    Ok(Reply::OK)
}

fn apply(flavour: Flavour, user: &mut User, rule: &str) -> Result<(), &'static str> {
    const SYNTAX: &str = "Syntax error";
    match rule.to_ascii_lowercase().as_str() {
        "on" => user.is_enabled = true,
        "off" => user.is_enabled = false,
        "nopass" => user.forget_passwords(true),
        "resetpass" => user.forget_passwords(false),
        "allkeys" => user.add_keys(b"*".to_vec(), Access::BOTH),
        "resetkeys" => user.forget_keys(),
        "allchannels" => user.add_channels(b"*".to_vec()),
        "resetchannels" => user.forget_channels(),
        "allcommands" => user.allow(true, Scope::All),
        "nocommands" => user.allow(false, Scope::All),
        "sanitize-payload" | "skip-sanitize-payload" => {}
        lower => {
            let (kind, rest) = rule.split_at_checked(1).ok_or(SYNTAX)?;
            match kind {
                ">" => user.add_password(rest.as_bytes().to_vec()),
                "<" => user.remove_password(rest.as_bytes()),
                "~" if user.may_use_all_keys() => return Err(ALL_KEYS),
                "~" => user.add_keys(rest.as_bytes().to_vec(), Access::BOTH),
                "&" if user.may_use_all_channels() => return Err(ALL_CHANNELS),
                "&" => user.add_channels(rest.as_bytes().to_vec()),
                "+" | "-" => user.allow(kind == "+", scope(&lower[1..])?),
                "%" if flavour > Flavour::Redis62 => {
                    let (access, pattern) = rest.split_once('~').ok_or(SYNTAX)?;
                    let access = match access.to_ascii_lowercase().as_str() {
                        "r" => Access::READ,
                        "w" => Access::WRITE,
                        "rw" | "wr" => Access::BOTH,
                        _ => return Err(SYNTAX),
                    };
                    user.add_keys(pattern.as_bytes().to_vec(), access);
                }
                _ => return Err(SYNTAX),
            }
        }
    }
    Ok(())
}

/// Reads `get`, `config|get`, `@read`.
fn scope(text: &str) -> Result<Scope, &'static str> {
    const UNKNOWN: &str = "Unknown command or category name in ACL";
    if let Some(category) = text.strip_prefix('@') {
        return match category {
            "all" => Ok(Scope::All),
            known if table::has_category(known) => Ok(Scope::Category(known.to_owned())),
            _ => Err(UNKNOWN),
        };
    }
    let (command, subcommand) = text.split_once('|').map_or((text, None), |(name, sub)| (name, Some(sub)));
    // Names of other kinds of servers are known, too: a page may list them for both.
    table::find(command.as_bytes()).ok_or(UNKNOWN)?;
    Ok(match subcommand {
        Some(subcommand) => Scope::Subcommand(command.to_owned(), subcommand.to_owned()),
        None => Scope::Command(command.to_owned()),
    })
}
