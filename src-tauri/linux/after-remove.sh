#!/bin/sh
# Takes away what after-install.sh put in place.
set -e
if [ -e /etc/apparmor.d/ironcurtain-sandbox ]; then
    if aa-enabled --quiet; then
        apparmor_parser --remove /etc/apparmor.d/ironcurtain-sandbox
    fi
    rm -f /etc/apparmor.d/ironcurtain-sandbox
fi
