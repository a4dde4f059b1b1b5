//! Who logs in, and who is logged in.

use linerate_model::watch::UnixMillis;
use maud::html;

use super::{Sheet, document};
use crate::access::Caller;

fn sheet(title: &str, now: UnixMillis) -> Sheet<'_> {
    Sheet {
        title,
        place: "",
        now,
        firing: 0,
    }
}

pub(crate) fn form(next: &str, why: Option<&str>, now: UnixMillis) -> String {
    let content = html! {
        h1 { "Log in" }
        @if let Some(why) = why { p class="warning" role="alert" { (why) } }
        form class="plain" method="post" action="/login" {
            input type="hidden" name="next" value=(next);
            p { label for="name" { "Name" } " " input id="name" name="name" required maxlength="64" autocomplete="username" autofocus; }
            p { label for="password" { "Password" } " " input id="password" name="password" type="password" required maxlength="1024" autocomplete="current-password"; }
            p { button type="submit" { "Log in" } }
        }
        p class="about" { "Users are made on the hub's host: " code { "linerate hub user add NAME --role viewer" } }
    };
    document(sheet("Log in", now), &content)
}

pub(crate) fn signed_in(caller: &Caller, now: UnixMillis) -> String {
    let content = html! {
        h1 { "Account" }
        @if let Some(name) = &caller.name {
            p { "You are logged in as " strong { (name) } ", whose role is " strong { (caller.role.word()) } "." }
            form class="plain" method="post" action="/logout" { button type="submit" { "Log out" } }
        } @else {
            p { "This hub has no users: whoever uses its host may see and do everything." }
            p { "To ask for a login, make a user on the hub's host: " code { "linerate hub user add NAME --role admin" } }
        }
        div class="wide" tabindex="0" role="region" aria-label="Roles" {
            table class="rows" {
                thead { tr { th scope="col" { "Role" } th scope="col" { "May" } } }
                tbody {
                    tr { th scope="row" { "viewer" } td class="text" { "see pages, API and metrics" } }
                    tr { th scope="row" { "operator" } td class="text" { "also make and end silences, accept the new level of an alert, and ask for a test" } }
                    tr { th scope="row" { "admin" } td class="text" { "the same as an operator; users are managed on the hub's host" } }
                }
            }
        }
    };
    document(sheet("Account", now), &content)
}
