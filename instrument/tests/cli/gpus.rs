//! `cuinstr gpus` where there is no driver.

use crate::project::Project;

#[test]
fn gpus_without_nvml_say_what_is_missing() {
    if std::path::Path::new("/dev/nvidiactl").exists() {
        return;
    }
    Project::new(&[]).run("gpus --json").exits(3).says("libnvidia-ml.so.1) comes with the driver");
}

#[test]
fn a_wrong_configuration_is_named_before_anything_is_looked_at() {
    let project = Project::new(&[("cuinstr.toml", "[gpu]\norder = 1\n")]);
    project.run("gpus").exits(3).says("cuinstr.toml").says("invalid type");
    project.run("gpus --min-free 20X").exits(2).says("20G or 512M");
}
