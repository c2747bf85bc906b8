#!/bin/sh
# Takes away what after-install.sh put in place, unless a newer version is put in place (of Debian's packages: `upgrade`; of others: 1).
set -e
root="${DPKG_ROOT:-}"
case "${1:-remove}" in upgrade | 1) exit 0 ;; esac
if [ -e "$root/etc/apparmor.d/ironcurtain-sandbox" ]; then
    if [ -z "$root" ] && aa-enabled --quiet; then
        apparmor_parser --remove /etc/apparmor.d/ironcurtain-sandbox
    fi
    rm -f "$root/etc/apparmor.d/ironcurtain-sandbox"
fi
