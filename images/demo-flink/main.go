// SPDX-License-Identifier: Apache-2.0

// Command demo-flink stands for Java with Flink in tests: it has the command line of Java, reads the configuration that the companion wrote,
// and plays a JobManager or a TaskManager with a job that counts. It speaks the part of Flink's REST API and of its state folder that the
// companion uses. Its image is a few megabytes.
package main

import (
	"os"

	"github.com/capstan-dev/capstan/images/demo-flink/double"
)

func main() {
	os.Exit(double.Main(os.Args[1:], os.Stdout))
}
