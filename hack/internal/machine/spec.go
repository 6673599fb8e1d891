// SPDX-License-Identifier: Apache-2.0

// Package machine runs the simulated machines of a cluster: the control plane and the nodes. A machine is one process
// tree with network, mount, pid, ipc and host name namespaces of its own. Its first process is this same program; when
// that dies the kernel ends all the others and drops every mount, interface and packet filter rule with them. So the
// plug of a machine is one process, and nothing has to be found by name to clean up.
package machine

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Data is where a machine sees its own data folder, the same path in every machine.
const Data = "/run/capstan"

// Path is where components look for programs of the system.
const Path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// A Spec says what a machine is and what it runs.
type Spec struct {
	// Name is the host name and the name of the machine's control groups.
	Name string `json:"name"`
	// Dir is the machine's data folder on the real machine.
	Dir string `json:"dir"`
	// Mounts are made in order once /run is empty and Data is mounted.
	Mounts []Mount `json:"mounts"`
	// Sysctls are files below /proc/sys and their content.
	Sysctls map[string]string `json:"sysctls"`
	// Components are started in order and started again when they end.
	Components []Component `json:"components"`
	// Grace is how long processes have to end when the machine is shut down.
	Grace time.Duration `json:"grace"`
}

// A Mount is a folder of the real machine, or an empty file system in memory when Source is empty.
type Mount struct {
	Source string `json:"source,omitempty"`
	Target string `json:"target"`
}

// A Component is a program that a machine keeps running.
type Component struct {
	Name string `json:"name"`
	// Path of the program, then its arguments.
	Path string   `json:"path"`
	Args []string `json:"args"`
	// Env goes before PATH and HOME, which are all the rest of its environment.
	Env []string `json:"env,omitempty"`
	// Ready is what must answer before the next component starts, if anything: the path of a unix socket, a TCP address,
	// or a URL that must be fine.
	Ready string `json:"ready,omitempty"`
}

// LogFile returns the file of a component's output on the real machine.
func (s Spec) LogFile(component string) string {
	return filepath.Join(s.Dir, "log", component+".log")
}

func (s Spec) file() string { return filepath.Join(s.Dir, "machine.json") }

func (s Spec) write() error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot encode machine %q: %w", s.Name, err)
	}
	if err := os.MkdirAll(filepath.Join(s.Dir, "log"), 0o750); err != nil {
		return fmt.Errorf("cannot create the folder of machine %q: %w", s.Name, err)
	}
	if err := os.WriteFile(s.file(), data, 0o600); err != nil {
		return fmt.Errorf("cannot write the description of machine %q: %w", s.Name, err)
	}
	return nil
}

func readSpec(path string) (Spec, error) {
	var s Spec
	data, err := os.ReadFile(path)
	if err != nil {
		return s, fmt.Errorf("cannot read the description of this machine: %w", err)
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("cannot parse the description of this machine: %w", err)
	}
	return s, nil
}
