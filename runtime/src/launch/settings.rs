//! How a launch is made, besides its limits.

/// How a launch is made, besides its limits.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Settings {
    pub(super) flag: crate::slot::FlagMemory,
    pub(super) is_timed: bool,
    pub(super) has_watchdog: bool,
    pub(super) is_cooperative: bool,
    pub(super) or_busy: bool,
    pub(super) is_pausable: bool,
    pub(super) cluster: Option<[u32; 3]>,
}

/// The methods that set how a launch is made, of what has a field `settings: Settings`.
macro_rules! setting_methods {
    () => {
        /// Where the flag lies: in device memory unless said otherwise.
        pub fn flag(&mut self, memory: $crate::slot::FlagMemory) -> &mut Self {
            self.settings.flag = memory;
            self
        }

        /// If it does not leave within its grace time, trap: the process loses its GPU state, all of it. A kernel of one thread lies in wait beside this
        /// launch until it is over.
        pub fn watchdog(&mut self) -> &mut Self {
            self.settings.has_watchdog = true;
            self
        }

        /// Takes the time with the device's own events, which costs the launch a microsecond or two.
        pub fn timed(&mut self) -> &mut Self {
            self.settings.is_timed = true;
            self
        }

        /// Launches it cooperatively, for grid-wide barriers.
        pub fn cooperative(&mut self) -> &mut Self {
            self.settings.is_cooperative = true;
            self
        }

        /// If the module is in flight on another stream and can't be loaded twice, answer [`Error::Busy`] instead of queueing behind it.
        pub fn or_busy(&mut self) -> &mut Self {
            self.settings.or_busy = true;
            self
        }
    };
}
pub(super) use setting_methods;
