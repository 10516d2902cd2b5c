//! Functions of the system, which have no body in any PTX. That they return is an assumption of the proof (docs/VERIFY.md).

/// "System calls" of NVIDIA's document on PTX interoperability, and the driver's side of the device runtime, as
/// `libcudadevrt` of CUDA 13.0 calls it.
const NAMES: &[&str] = &[
    "vprintf",
    "malloc",
    "free",
    "__assertfail",
    "__assert_fail",
    "cudaDeviceSynchronize",
    "cudaGetParameterBufferV2",
    "cudaLaunchDeviceV2",
    "cudaGetParameterBuffer",
    "cudaLaunchDevice",
    "cudaGraphLaunch",
    "__cudaCDP2GetParameterBufferV2",
    "__cudaCDP2LaunchDeviceV2",
    "__cudaCDP2GetParameterBuffer",
    "__cudaCDP2LaunchDevice",
    "cnpGetLastError",
    "cnpSetLastError",
    "cnpGetParameterBuffer",
    "cnpGetParameterBufferV2",
    "cnpLaunchDevice",
    "cnpLaunchDeviceV2",
    "cnpGetLimit",
    "cnpGetCacheConfig",
    "cnpGetSharedMemConfig",
    "cnpGetDeviceCount",
    "cnpDeviceGetAttribute",
    "cnpGetDevice",
    "cnpStreamCreate",
    "cnpStreamDestroy",
    "cnpStreamWaitEvent",
    "cnpEventCreate",
    "cnpEventRecord",
    "cnpEventDestroy",
    "cnpFuncGetAttribute",
];

/// How the names of the driver's system calls begin. They are reserved.
const PREFIX: &str = "__cuda_syscall_";

/// How the names of those end that work on the thread's own default stream.
const PER_THREAD: &str = "_ptsz";

/// Whether a function of the system launches the kernel that is its first argument, or prepares to. A graph's first argument is no kernel: it may hold any.
pub(crate) fn launches(name: &str) -> bool {
    let known = name.strip_suffix(PER_THREAD).unwrap_or(name);
    // `LaunchDeviceV2` takes a buffer that was made for the kernel, and `GetParameterBuffer` takes sizes.
    let is_launch = known.contains("LaunchDevice") && !known.ends_with("LaunchDeviceV2");
    let is_buffer = known.contains("GetParameterBuffer") && !known.ends_with("GetParameterBuffer");
    is_system(name) && (is_launch || is_buffer || known == GRAPH)
}

/// Whether a function of the system has the device launch something.
#[must_use]
pub fn is_launch(name: &str) -> bool {
    is_system(name) && (name.contains("LaunchDevice") || name == GRAPH)
}

/// Launches a graph from the device.
const GRAPH: &str = "cudaGraphLaunch";

/// Whether a function that has no body here is one of the system's.
#[must_use]
pub fn is_system(name: &str) -> bool {
    NAMES.contains(&name.strip_suffix(PER_THREAD).unwrap_or(name)) || name.starts_with(PREFIX)
}

#[cfg(test)]
mod tests {
    use super::launches;

    #[test]
    fn each_name_that_launches_a_kernel_is_known() {
        let all = [
            "cudaGetParameterBufferV2",
            "__cudaCDP2GetParameterBufferV2",
            "cnpGetParameterBufferV2",
            "__cuda_syscall_cnpv2GetParameterBufferV2",
            "cudaGetParameterBufferV2_ptsz",
            "cudaLaunchDevice",
            "__cudaCDP2LaunchDevice_ptsz",
            "cnpLaunchDevice",
            "__cuda_syscall_cnpv2LaunchDevice",
            "__cuda_syscall_cnpv2LaunchDevice_ptsz",
            "cudaGraphLaunch",
        ];
        assert_eq!(all.map(launches), [true; 11]);
        let others = ["cudaLaunchDeviceV2", "__cudaCDP2LaunchDeviceV2_ptsz", "cudaGetParameterBuffer", "myLaunchDevice", "vprintf"];
        assert_eq!(others.map(launches), [false; 5]);
    }
}
