//! Who may sign in.

/// The name under which the session keeps the user, if name and password belong together.
///
/// A real application looks the user up and verifies a slow hash of the password, such as Argon2id. It also limits
/// attempts. Portcullis sees neither: it begins where somebody has proved who they are.
pub(crate) fn verify(user: &str, password: &str) -> Option<&'static str> {
    let known = USERS.into_iter().find(|known| *known == user)?;
    (password == PASSWORD).then_some(known)
}

/// The password of both users.
pub(crate) const PASSWORD: &str = "portcullis";

const USERS: [&str; 2] = ["alice", "bob"];
