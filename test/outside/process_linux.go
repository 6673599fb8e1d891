// SPDX-License-Identifier: Apache-2.0

package outside

import "syscall"

// attributes give a process its own group and let the kernel kill it with the thread that started it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// mortal is the start of a command line for programs that start other programs: it makes the kernel kill them with
// their parent.
const mortal = "setpriv --pdeathsig KILL "
