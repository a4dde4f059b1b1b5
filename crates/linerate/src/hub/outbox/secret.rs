//! Secrets in files.

use std::path::Path;

/// A secret is no longer than this, bytes.
const MOST_SECRET: usize = 4096;

/// The secret of a file, blanks around it left out.
pub(super) fn read(file: &Path) -> Result<Vec<u8>, String> {
    let secret = std::fs::read(file)
        .map_err(|error| format!("cannot read the secret {}: {error}", file.display()))?;
    let secret = secret.trim_ascii();
    if secret.is_empty() || secret.len() > MOST_SECRET {
        return Err(format!(
            "the secret {} is empty or longer than {MOST_SECRET} bytes",
            file.display()
        ));
    }
    Ok(secret.to_vec())
}
