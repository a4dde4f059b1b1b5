//! Runs between this host and its peer. Settings are changed for a run and restored after it: by this process
//! whatever ends the run, and by a second one if this one is killed.

use std::ffi::OsString;
use std::os::fd::AsFd as _;

use linerate_analysis::evidence::Evidence;
use linerate_engine::client::{ClientOptions, DatagramFit};
use linerate_experiment::measured::Measured;
use linerate_explain::explain;
use linerate_kernel::counters::{self, MachineTime};
use linerate_kernel::thread::SignalFd;
use linerate_model::record::Outcome;
use linerate_model::tuning::Object;
use linerate_report::json;
use linerate_report::view::RunView;
use linerate_tune::live::Live;
use linerate_tune::plan::plan;
use linerate_tune::profile::Wish;
use linerate_tune::settings::{Saved, SettingError, Settings};
use linerate_tune::state_folder::Lock;

use super::guard::{Guard, restore_all};
use super::{Gave, Place, Wanted};
use crate::action::{Action, Failure};
use crate::arguments::{self, Command, Runs, TestRequest};
use crate::host::facts_of;
use crate::{successive, test};

/// A hypervisor that gave more of this machine's CPU time to others than this share disturbed the run.
const STOLEN: f64 = 0.02;

/// This host and its peer.
pub(crate) struct HostPlace {
    peer: String,
    settings: Box<dyn Settings>,
    /// What all runs together may change, as it was.
    saved: Vec<(Object, Saved)>,
    /// What could not be saved, which is therefore not changed.
    unsaved: Vec<SettingError>,
    guard: Option<Guard>,
    stop: SignalFd,
    /// Nobody else changes settings until all is as it was; the guard holds it too.
    _lock: Option<Lock>,
}

impl HostPlace {
    /// Saves what the wishes are about and lets a second process hold it. Nothing is changed. Where there are wishes,
    /// `lock` is asked first for the right to change settings.
    ///
    /// # Errors
    /// Where `lock` refuses; where settings cannot be set at all, mostly for want of root.
    pub(crate) fn prepare<'a>(
        peer: &str,
        wishes: impl IntoIterator<Item = &'a Wish>,
        stop: SignalFd,
        lock: impl FnOnce() -> Result<Lock, Failure>,
    ) -> Result<Self, Failure> {
        let mut settings = Box::new(Live::default());
        let mut wishes = wishes.into_iter().peekable();
        let lock = match wishes.peek() {
            Some(_) => Some(lock()?),
            None => None,
        };
        let mut saved: Vec<(Object, Saved)> = Vec::new();
        let mut unsaved: Vec<SettingError> = Vec::new();
        for wish in wishes {
            let object = &wish.object;
            let known = saved.iter().any(|(known, _)| known == object)
                || unsaved.iter().any(|error| error.object == *object);
            if known {
                continue;
            }
            match settings.save(object) {
                Ok(value) => saved.push((object.clone(), value)),
                Err(error) => unsaved.push(error),
            }
        }
        may_set(settings.as_mut(), &saved)?;
        let guard = if saved.is_empty() {
            None
        } else {
            Some(Guard::start(&saved, lock.as_ref().map(Lock::as_fd))?)
        };
        Ok(Self {
            peer: peer.to_owned(),
            settings,
            saved,
            unsaved,
            guard,
            stop,
            _lock: lock,
        })
    }

    /// The test that words ask for.
    ///
    /// # Errors
    /// Words that are no test, or one that an experiment cannot make.
    pub(crate) fn request(peer: &str, words: &[String]) -> Result<TestRequest, Failure> {
        let mut all: Vec<OsString> = ["linerate", "test", peer].map(OsString::from).to_vec();
        all.extend(words.iter().map(OsString::from));
        let refused = |text: String| Failure::Usage(format!("of the test's options: {text}"));
        match arguments::parse(all) {
            Action::Run(Command::Test(arguments)) => {
                let kept = arguments.output.is_some() || !arguments.files.is_empty();
                let plain = arguments.runs() == Runs::One && !kept;
                let request = arguments.request().map_err(refused)?;
                if plain {
                    return Ok(request);
                }
                Err(Failure::Usage(
                    "the runs of an experiment are plain tests: --counter-test, --rfc6349, -o and files of a report (--html …) belong to `linerate test`"
                        .to_owned(),
                ))
            }
            Action::Refuse(text) => Err(refused(text)),
            _ => Err(Failure::Usage(format!(
                "'{}' are not options of `linerate test`",
                words.join(" ")
            ))),
        }
    }

    /// Sets what is wished; why it cannot be, where it cannot.
    fn set(&mut self, wishes: &[Wish]) -> Result<Option<String>, Failure> {
        let about = |error: &SettingError| wishes.iter().any(|wish| wish.object == error.object);
        if let Some(error) = self.unsaved.iter().find(|error| about(error)) {
            return Ok(Some(format!(
                "{error}; what cannot be saved is not changed"
            )));
        }
        let plan = plan(&facts_of(None)?, wishes);
        if let Some(refusal) = plan.refused.first() {
            return Ok(Some(format!(
                "{} = {} ({}): {}",
                refusal.object, refusal.wanted, refusal.from, refusal.why
            )));
        }
        for step in &plan.steps {
            if let Err(error) = self.settings.write(&step.object, &step.wanted) {
                return Ok(Some(error.to_string()));
            }
            match self.settings.read(&step.object) {
                Ok(read) if read == step.wanted => {}
                Ok(read) => {
                    return Ok(Some(format!(
                        "{} was set to {} and reads {read}",
                        step.object, step.wanted
                    )));
                }
                Err(error) => return Ok(Some(error.to_string())),
            }
        }
        Ok(None)
    }

    fn restore(&mut self) -> Result<(), Failure> {
        let wrong = restore_all(self.settings.as_mut(), &self.saved);
        if wrong.is_empty() {
            return Ok(());
        }
        let values: Vec<String> = self
            .saved
            .iter()
            .map(|(object, saved)| format!("{object} = {}", saved.value))
            .collect();
        Err(Failure::Setting(format!(
            "not all settings were restored: {}; the old values are {}",
            wrong.join("; "),
            values.join(", ")
        )))
    }

    fn run(&self, words: &[String]) -> Result<Gave, Failure> {
        let request = Self::request(&self.peer, words)?;
        let options = ClientOptions {
            credentials: test::credentials(&request.arguments)?,
            fit_datagrams: (!request.arguments.has_length()).then_some(DatagramFit::NoFragments),
            ..ClientOptions::default()
        };
        let before = counters::machine().ok();
        let record = match successive::run(&request.plan, &options, &self.stop) {
            Ok(Some(record)) if record.outcome != Outcome::Interrupted => record,
            Ok(_) => return Ok(Gave::Stopped),
            Err(why) => return Ok(Gave::Measured(Box::new(Measured::failed(why)))),
        };
        let disturbed = stolen(before, counters::machine().ok())
            .into_iter()
            .collect();
        let evidence = Evidence::of(&record);
        let view = RunView::of(&evidence, &explain(&evidence));
        let document = serde_json::from_str(&json::document(&view, &record))
            .map_err(|error| Failure::Incomplete(format!("the test's document: {error}")))?;
        let measured = Measured::of_document(&document, disturbed);
        Ok(Gave::Measured(Box::new(measured)))
    }
}

impl Place for HostPlace {
    fn measure(&mut self, wanted: Wanted<'_>) -> Result<Gave, Failure> {
        let set = self.set(wanted.wishes);
        let gave = match set {
            Ok(None) => self.run(wanted.words),
            Ok(Some(why)) => Ok(Gave::Impossible(why)),
            Err(failure) => Err(failure),
        };
        self.restore()?;
        gave
    }
}

/// Also where a run panics: what is left is restored while the stack unwinds.
impl Drop for HostPlace {
    fn drop(&mut self) {
        if self.restore().is_ok()
            && let Some(guard) = self.guard.take()
        {
            guard.dismiss();
        }
        // Else the guard tries once more, and says what it could not.
    }
}

/// Whether a setting can be set at all: one is set to what it is.
fn may_set(settings: &mut dyn Settings, saved: &[(Object, Saved)]) -> Result<(), Failure> {
    use linerate_model::tuning::InterfaceSetting as S;
    let harmless = saved.iter().find(|(object, _)| match object {
        Object::Sysctl { .. } => true,
        Object::Interface { setting, .. } => matches!(setting, S::Mtu | S::Txqueuelen),
        Object::Governor | Object::Block { .. } => false,
    });
    let Some((object, saved)) = harmless else {
        return Ok(());
    };
    settings.restore(object, saved).map_err(|error| {
        Failure::Setting(format!(
            "{error}; changing settings needs root (CAP_NET_ADMIN). Nothing was changed"
        ))
    })
}

fn stolen(before: Option<MachineTime>, after: Option<MachineTime>) -> Option<String> {
    let share = after?.since(before?).stolen_share()?;
    (share > STOLEN).then(|| {
        format!(
            "the hypervisor gave {:.1} % of this machine's CPU time to others",
            100.0 * share
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_the_hypervisor_took_time_from_is_disturbed() {
        let at = |stolen, all| {
            Some(MachineTime {
                busy: 0,
                stolen,
                all,
            })
        };
        assert_eq!(stolen(at(0, 1000), at(10, 2000)), None);
        let said = stolen(at(0, 1000), at(50, 2000)).unwrap();
        assert!(said.contains("5.0 %"), "{said}");
        assert_eq!(stolen(None, at(50, 2000)), None);
    }

    #[test]
    fn the_test_of_an_experiment_is_a_plain_one() {
        let words = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        let request = HostPlace::request("host", &words("-t 3 -P 2")).unwrap();
        assert_eq!(
            (request.plan.streams, request.plan.host.as_str()),
            (2, "host")
        );
        for (text, said) in [
            ("--rfc6349", "plain tests"),
            ("-o x", "plain tests"),
            ("--paralel 2", "of the test's options"),
            ("--help", "are not options"),
        ] {
            let error = HostPlace::request("host", &words(text))
                .unwrap_err()
                .to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
