#!/bin/sh
# Puts the AppArmor profile in place where AppArmor knows user namespaces (4.0 and newer); elsewhere none is needed.
set -e
root="${DPKG_ROOT:-}"
if [ -e "$root/etc/apparmor.d/abi/4.0" ]; then
    cp "$root/usr/share/ironcurtain/ironcurtain-sandbox.apparmor" "$root/etc/apparmor.d/ironcurtain-sandbox"
    if [ -z "$root" ] && aa-enabled --quiet; then
        apparmor_parser --replace --write-cache /etc/apparmor.d/ironcurtain-sandbox
    fi
fi
