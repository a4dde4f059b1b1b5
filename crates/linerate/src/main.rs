//! `linerate`: measure the throughput between hosts and say why it is not higher.
//!
//! Arguments become one action, an action one call into a library, its result goes through the one
//! printer, and only this file chooses exit codes.

mod action;
mod arguments;
mod compare;
mod counter_test;
mod expect;
mod explain;
mod host;
mod host_limit;
mod input;
mod iperf3_arguments;
mod iperf3_mode;
mod keep;
mod lab;
mod observe;
mod outlet;
mod place;
mod printer;
mod prove;
mod report_files;
mod rfc6349;
mod serve;
mod show;
mod signals;
mod successive;
mod sweep;
mod test;
mod tune;

use std::process::ExitCode;

use action::{Action, Failure};
use arguments::Runs;
use printer::Printer;

fn main() -> ExitCode {
    let mut printer = Printer::new();
    let arguments: Vec<std::ffi::OsString> = std::env::args_os().collect();
    let outcome = match action::parse(arguments) {
        Action::Test(request) if request.runs == Runs::Rfc6349 => rfc6349::run(&request, &printer),
        Action::Test(request) => test::run(&request, &mut printer),
        Action::Serve(request) => serve::run(*request, &printer),
        Action::Show(request) => show::run(&request, &mut printer),
        Action::Expect(arguments) => expect::run(&arguments, &mut printer),
        Action::Compare(request) => compare::run(&request, &mut printer),
        Action::Observe(request) => observe::run(&request, &mut printer),
        Action::Explain(request) => explain::run(&request, &mut printer),
        Action::Iperf3(arguments) => iperf3_mode::run(arguments, &mut printer),
        Action::Lab(arguments) => lab::run(*arguments, &printer),
        Action::Tune(arguments) => tune::run(*arguments, &printer),
        Action::Prove(arguments) => prove::run(&arguments, &printer),
        Action::Sweep(arguments) => sweep::run(&arguments, &printer),
        Action::SettingsGuard => place::guard::stand(),
        Action::HostLimit(arguments) => host_limit::run(&arguments, &printer),
        Action::Host(arguments) => host::run(*arguments, &printer),
        Action::Print(text) => printer.print(&text).map_err(Failure::from),
        Action::Refuse(text) => Err(Failure::Usage(text)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            printer.complain(&failure);
            failure.exit_code()
        }
    }
}
