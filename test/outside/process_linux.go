// SPDX-License-Identifier: Apache-2.0

package outside

import "syscall"

// attributes give a process a group of its own and let the kernel kill it with the thread that started it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// mortal is the start of a command line for programs that others start: it makes the kernel kill them with their parent.
const mortal = "setpriv --pdeathsig KILL "
