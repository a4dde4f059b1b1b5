//! Chromium by chromedriver: the few commands of `WebDriver` and of Chromium's own protocol that tests need.

use std::io::{BufRead, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use linerate_testing::{Need, skipped};
use serde_json::{Value, json};

/// A page that takes longer does not come.
const PATIENCE: Duration = Duration::from_secs(120);

/// A browser with one tab, and its driver. Both end with this.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    /// The browser's files.
    profile: tempfile::TempDir,
}

impl Browser {
    /// `None` where there is no browser here, which it reports.
    pub(crate) fn start() -> Option<Self> {
        match Self::try_start() {
            Ok(browser) => Some(browser),
            Err(why) => {
                skipped(Need::Browser, "pages in a browser", &why);
                None
            }
        }
    }

    fn try_start() -> Result<Self, String> {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| {
                format!("chromedriver is not installed (scripts/test-deps.sh): {error}")
            })?;
        let profile = tempfile::tempdir().unwrap();
        let output = BufReader::new(driver.stdout.take().unwrap());
        let mut browser = Self {
            driver,
            port: port(output).ok_or("chromedriver does not start here")?,
            session: String::new(),
            profile,
        };
        let arguments = [
            "--headless=new".to_owned(),
            "--no-sandbox".to_owned(),
            "--disable-gpu".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--hide-scrollbars".to_owned(),
            format!("--user-data-dir={}", browser.profile.path().display()),
        ];
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        let session = browser.ask("POST", "/session", &wanted)?;
        session["sessionId"]
            .as_str()
            .unwrap()
            .clone_into(&mut browser.session);
        Ok(browser)
    }

    /// One command of `WebDriver`; the error is what the driver says.
    fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let body = if method == "POST" {
            body.to_string()
        } else {
            String::new()
        };
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))
            .map_err(|error| format!("chromedriver is gone: {error}"))?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.port,
            body.len()
        );
        let failed = |error| format!("{method} {path}: {error}");
        stream.write_all(request.as_bytes()).map_err(failed)?;
        let body = answered(BufReader::new(stream)).map_err(failed)?;
        let answer: Value = serde_json::from_slice(&body)
            .map_err(|error| format!("{method} {path}: not JSON: {error}"))?;
        let value = answer["value"].clone();
        match value["error"].as_str() {
            None => Ok(value),
            Some(error) => Err(format!("{method} {path}: {error}: {}", value["message"])),
        }
    }

    fn command(&self, path: &str, body: &Value) -> Value {
        let path = format!("/session/{}/{path}", self.session);
        self.ask("POST", &path, body)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// A command of Chromium's own protocol.
    pub(crate) fn chromium(&self, command: &str, parameters: &Value) -> Value {
        self.command(
            "goog/cdp/execute",
            &json!({"cmd": command, "params": parameters}),
        )
    }

    /// Loads a page and waits until its scripts ran.
    pub(crate) fn open(&self, url: &str) {
        self.command("url", &json!({"url": url}));
    }

    /// The value of an expression in the page; a promise is waited for. The page's policy does not matter to it.
    pub(crate) fn value(&self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let answer = self.chromium("Runtime.evaluate", &asked);
        let shown: String = expression.chars().take(300).collect();
        assert!(
            answer["exceptionDetails"].is_null(),
            "{shown}: {}",
            answer["exceptionDetails"]
        );
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub(crate) fn until(&self, expression: &str) {
        let begun = Instant::now();
        while self.value(expression) != json!(true) {
            assert!(
                begun.elapsed() < PATIENCE,
                "never came: {expression}; the page: {}",
                self.value("document.body.innerText")
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The size of the window, in pixels of style sheets.
    pub(crate) fn size(&self, width: u32, height: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.chromium("Emulation.setDeviceMetricsOverride", &size);
    }

    /// `dark` or `light`, as the reader's system prefers it.
    pub(crate) fn scheme(&self, scheme: &str) {
        let wanted = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.chromium("Emulation.setEmulatedMedia", &wanted);
    }

    /// Whether pages may run scripts from the next one on.
    pub(crate) fn scripts(&self, run: bool) {
        self.chromium(
            "Emulation.setScriptExecutionDisabled",
            &json!({"value": !run}),
        );
    }

    /// Presses a key by its name and code, with or without Shift. Enter acts by the character that it makes.
    pub(crate) fn press(&self, key: &str, code: u32, shift: bool) {
        let mut event = json!({"type": "rawKeyDown", "key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": if shift { 8 } else { 0 }});
        if key == "Enter" {
            event["type"] = "keyDown".into();
            event["text"] = "\r".into();
        }
        self.chromium("Input.dispatchKeyEvent", &event);
        event["type"] = "keyUp".into();
        self.chromium("Input.dispatchKeyEvent", &event);
    }

    /// What the console said since this was asked the last time: errors, warnings, violations of the policy.
    pub(crate) fn console(&self) -> Vec<String> {
        let said = self.command("se/log", &json!({"type": "browser"}));
        let said = said.as_array().unwrap().iter();
        said.map(|line| format!("{} {}", line["level"], line["message"]))
            .collect()
    }

    /// A picture of what is in the window, or of the `whole` page, into a file.
    pub(crate) fn picture(&self, whole: bool, file: &Path) {
        let wanted = json!({"format": "png", "captureBeyondViewport": whole});
        let answer = self.chromium("Page.captureScreenshot", &wanted);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, base64(answer["data"].as_str().unwrap())).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            let _ = self.ask(
                "DELETE",
                &format!("/session/{}", self.session),
                &Value::Null,
            );
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// `ChromeDriver was started successfully on port 35677.`
fn port(mut output: impl BufRead + Send + 'static) -> Option<u16> {
    let mut line = String::new();
    while output.read_line(&mut line).ok()? > 0 {
        if let Some((_, port)) = line.split_once("successfully on port ") {
            let port = port.trim_end().trim_end_matches('.').parse().ok();
            // It must not end by a closed pipe.
            std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
            return port;
        }
        line.clear();
    }
    None
}

/// The body of an answer, as long as its head says.
fn answered(mut stream: impl BufRead) -> std::io::Result<Vec<u8>> {
    let mut length = 0;
    let mut line = String::new();
    while stream.read_line(&mut line)? > 2 {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(body)
}

fn base64(text: &str) -> Vec<u8> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for byte in text.bytes() {
        let Some(digit) = ALPHABET.iter().position(|known| *known == byte) else {
            continue;
        };
        bits = bits << 6 | u32::try_from(digit).unwrap();
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).unwrap());
        }
    }
    bytes
}
