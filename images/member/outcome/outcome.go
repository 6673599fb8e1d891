// SPDX-License-Identifier: Apache-2.0

// Package outcome is what a program leaves behind when it ends: the result of a backup, or why it failed.
package outcome

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// most is what the kubelet keeps of a termination message, in bytes.
const most = 4096

// A Backup is the result of one, as one line of JSON.
type Backup struct {
	// Label of the backup.
	Label string `json:"label"`
	// Type is full, diff or incr.
	Type string `json:"type"`
	// Size of the data, and Added what it took in the repository, in bytes.
	Size  int64 `json:"size"`
	Added int64 `json:"added"`
	// Began and Ended are when it began and ended.
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended"`
}

// Print writes a value as one line of JSON, and to a file of the kubelet if there is one.
func Print(stdout io.Writer, file string, value any) error {
	line, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("cannot print the result: %w", err)
	}
	leave(file, line)
	_, err = fmt.Fprintln(stdout, string(line))
	return err
}

// Die writes why a program failed, in one line, and returns its exit code.
func Die(stderr io.Writer, file string, err error) int {
	words := strings.ReplaceAll(err.Error(), "\n", " ")
	if len(words) > most {
		words = strings.ToValidUTF8(words[:most], "")
	}
	_, _ = fmt.Fprintln(stderr, words)
	leave(file, []byte(words))
	return 1
}

// leave something in a file. The kubelet makes it. Outside of pods there is none, and no need for one.
func leave(file string, content []byte) {
	if f, err := os.OpenFile(file, os.O_WRONLY|os.O_TRUNC, 0); err == nil {
		_, _ = f.Write(content)
		_ = f.Close()
	}
}
