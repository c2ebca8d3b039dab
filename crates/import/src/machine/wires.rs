//! Which network interfaces and displays of a machine are no part of its network.

/// What names of interfaces begin with that software makes: bridges, tunnels, and ends of containers.
const VIRTUAL: [&str; 38] = [
    "antrea",
    "bridge",
    "br-",
    "cali",
    "cbr",
    "cilium",
    "cni",
    "docker",
    "dummy",
    "flannel",
    "geneve",
    "genev_sys",
    "gre",
    "ifb",
    "ip6tnl",
    "ipvl",
    "kube-",
    "lxc",
    "lxd",
    "macv",
    "nerdctl",
    "nodelocaldns",
    "ovn-",
    "ovs-",
    "podman",
    "sit",
    "tailscale",
    "tap",
    "tun",
    "vboxnet",
    "veth",
    "virbr",
    "vmnet",
    "vnet",
    "vxlan",
    "weave",
    "wg",
    "zt",
];

/// Whether an interface of this name leads to no cable of its own.
pub(crate) fn is_virtual(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // `eth0.100` is a VLAN on the cable of `eth0`.
    let is_vlan = name.rsplit_once('.').is_some_and(|(_, vlan)| is_number(vlan));
    name == "lo"
        || is_vlan
        || name.strip_prefix("br").is_some_and(is_number)
        || VIRTUAL.iter().any(|prefix| name.starts_with(prefix))
}

/// Vendors of displays that boards and virtual machines have for their consoles.
const CONSOLES: [&str; 11] = ["1013", "102b", "1234", "1414", "15ad", "18ca", "19e5", "1a03", "1af4", "1b36", "80ee"];

/// Displays of AMD that compute nothing: those inside Ryzen CPUs, and consoles of servers.
const DISPLAYS: [&str; 24] = [
    "13c0", "1506", "150e", "15bf", "15c8", "15d8", "15dd", "15e7", "1636", "1638", "163f", "164c", "164d", "164e",
    "1681", "1900", "1901", "4752", "4c59", "5159", "515e", "5960", "68f2", "68f9",
];

/// Whether a display of this vendor and device, in hexadecimal digits, shows pictures alone.
pub(crate) fn is_display(vendor: &str, device: &str) -> bool {
    let plain = |text: &str| text.trim_start_matches("0x").to_ascii_lowercase();
    let (vendor, device) = (plain(vendor), plain(device));
    CONSOLES.contains(&vendor.as_str()) || vendor == "1002" && DISPLAYS.contains(&device.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cables_are_told_from_what_software_makes() {
        for name in ["br-1a2b3c4d5e6f", "veth11aa22b", "docker0", "virbr0", "br0", "lo", "cali12ab", "eno1.100", "tun0"]
        {
            assert!(is_virtual(name), "{name}");
        }
        for name in
            ["eno1np0", "mlx5_0", "mlx5_bond_0", "bond0", "ib0", "enp1s0f0", "rdmap16s27", "eth0", "brcm0", "hsn0"]
        {
            assert!(!is_virtual(name), "{name}");
        }
    }

    #[test]
    fn displays_are_told_from_gpus() {
        for (vendor, device, shows) in
            [("0x1002", "0x164E", true), ("1a03", "2000", true), ("1002", "740f", false), ("0x10de", "0x2330", false)]
        {
            assert_eq!(is_display(vendor, device), shows, "{vendor} {device}");
        }
    }
}
