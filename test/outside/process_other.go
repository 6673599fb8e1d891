// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package outside

import "syscall"

// attributes give a process its own group. Only Linux kills it with the test when that panics.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

const mortal = ""
