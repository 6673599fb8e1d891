// SPDX-License-Identifier: Apache-2.0

// Command pause holds the namespaces of a pod open until it is stopped.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	<-stop
}
