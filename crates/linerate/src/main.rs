//! `linerate`: measure the throughput between hosts and say why it is not higher.
//!
//! Arguments become one action, an action one call into a library, its result goes through the one
//! printer, and only this file chooses exit codes.

mod action;
mod agent;
mod announcement;
mod archive;
mod arguments;
mod between;
mod check;
mod compare;
mod counter_test;
mod crash;
mod disk;
mod expect;
mod explain;
mod host;
mod host_limit;
mod hub;
mod input;
mod iperf2_arguments;
mod iperf2_mode;
mod iperf3_arguments;
mod iperf3_mode;
mod keep;
mod lab;
mod mesh;
mod nodes;
mod observe;
mod on;
mod outlet;
mod place;
mod printer;
mod prove;
mod report_files;
mod rfc6349;
mod serve;
mod session_token;
mod show;
mod signals;
mod successive;
mod sweep;
mod test;
mod transfer;
mod tune;
mod watch;

use std::process::ExitCode;

use action::{Action, Failure};
use arguments::Command;
use printer::Printer;

fn main() -> ExitCode {
    let mut printer = Printer::new();
    let arguments: Vec<std::ffi::OsString> = std::env::args_os().collect();
    let outcome = match action::parse(arguments) {
        Action::Run(command) => run(command, &mut printer),
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

fn run(command: Command, printer: &mut Printer) -> Result<(), Failure> {
    match command {
        Command::Test(arguments) => test::start(*arguments, printer),
        Command::Serve(arguments) => serve::run(*arguments, printer),
        Command::Show(arguments) => show::run(&arguments, printer),
        Command::Compare(arguments) => compare::run(&arguments, printer),
        Command::Check(arguments) => check::run(&arguments, printer),
        Command::Disk(arguments) => disk::run(&arguments, printer),
        Command::Observe(arguments) => observe::run(&arguments, printer),
        Command::Lab(arguments) => lab::run(*arguments, printer),
        Command::Mesh(arguments) => mesh::run(&arguments, printer),
        Command::Hub(arguments) => hub::run(&arguments, printer),
        Command::Archive(arguments) => archive::run(&arguments, printer),
        Command::Crash(arguments) => crash::run(&arguments, printer),
        Command::HostLimit(arguments) => host_limit::run(&arguments, printer),
        Command::Host(arguments) => host::run(*arguments, printer),
        Command::Tune(arguments) => tune::run(*arguments, printer),
        Command::Prove(arguments) => prove::run(&arguments, printer),
        Command::Sweep(arguments) => sweep::run(&arguments, printer),
        Command::Agent(arguments) => agent::run(&arguments, printer),
        Command::SettingsGuard => place::guard::stand(),
        Command::Reach(arguments) => between::reach::run(&arguments, printer),
        Command::Explain(arguments) => explain::run(&arguments, printer),
        Command::Nodes(arguments) => nodes::run(&arguments, printer),
        Command::Watch(arguments) => watch::run(&arguments, printer),
        Command::Expect(arguments) => expect::run(&arguments, printer),
        Command::Iperf { arguments } => iperf2_mode::run(arguments, printer),
        Command::Iperf3 { arguments } => iperf3_mode::run(arguments, printer),
    }
}
