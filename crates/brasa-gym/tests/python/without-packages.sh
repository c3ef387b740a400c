#!/bin/sh
# The interpreter of the tests without any installed package.
exec "${BRASA_PYTHON:-python3}" -I -S "$@"
