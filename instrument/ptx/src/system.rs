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

/// Of those the ones whose first argument is a kernel that they launch, or prepare to.
const LAUNCHES: &[&str] = &[
    "cudaGetParameterBufferV2",
    "__cudaCDP2GetParameterBufferV2",
    "cnpGetParameterBufferV2",
    "cudaLaunchDevice",
    "__cudaCDP2LaunchDevice",
    "cnpLaunchDevice",
];

/// Whether a function of the system launches the kernel that is its first argument.
pub(crate) fn launches(name: &str) -> bool {
    LAUNCHES.contains(&name)
}

/// Whether a function that has no body here is one of the system's.
#[must_use]
pub fn is_system(name: &str) -> bool {
    NAMES.contains(&name) || name.starts_with(PREFIX)
}
