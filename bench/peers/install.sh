#!/bin/sh
# Installs PostgreSQL and Redis from Debian's packages where they are missing,
# without starting what the packages bring as services: peers starts databases
# of its own. Does nothing, and needs no root, where both are there.
set -eu

missing=
command -v redis-server >/dev/null || missing="$missing redis-server"
command -v postgres >/dev/null || ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || missing="$missing postgresql"
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
	echo "install.sh: missing:$missing. Install them, or run this as root on Debian." >&2
	exit 1
fi

# Debian asks this program whether a service may be started; 101 means no.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
	trap 'rm -f "$policy"' EXIT
	trap 'exit 1' INT TERM HUP
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update
# shellcheck disable=SC2086 # a list of packages
apt-get install --yes --no-install-recommends $missing
