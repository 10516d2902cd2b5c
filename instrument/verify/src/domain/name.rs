//! Names of values. Registers with the same name hold the same value; this is value numbering.

/// Stands for a value: two registers with the same name, other than [`NO_NAME`], hold the same value. The name of an instruction's result
/// means that of its latest execution.
pub(crate) type Name = u32;

/// No name.
pub(crate) const NO_NAME: Name = 0;

/// The number of the launch: the word at offset 8 of the control block, which does not change during a launch.
pub(crate) const LAUNCH: Name = 1;

/// Part of the names of values of an earlier passage: see [`crate::domain::state::State::age`].
pub(crate) const AGED: Name = 1 << 31;

/// The first name that is free.
pub(crate) const FIRST_NAME: Name = 16;

/// The name of that number, or [`NO_NAME`] if there are too many.
pub(crate) fn name_of(number: u64) -> Name {
    Name::try_from(number).ok().filter(|name| *name < AGED).unwrap_or(NO_NAME)
}

#[cfg(test)]
mod tests {
    use super::{AGED, NO_NAME, name_of};

    #[test]
    fn what_has_no_number_left_has_no_name() {
        assert_eq!([AGED - 1, AGED, AGED + 1].map(|number| name_of(number.into())), [AGED - 1, NO_NAME, NO_NAME]);
        assert_eq!(name_of(1 << 40), NO_NAME);
    }
}
