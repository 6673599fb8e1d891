// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"
)

// Backstage starts the portal that hack/backstage has made, and stops it with the test. It returns the portal's address, which only the
// loopback interface has. The portal has more files of configuration with variables, beside its own.
func Backstage(tb testing.TB, files, variables []string) string {
	tb.Helper()
	port := freePort(tb)
	url := "http://" + loopback + ":" + port
	configs := append([]string{
		filepath.Join(program(tb, "backstage", "app"), "app-config.yaml"),
		filepath.Join(repository(tb), "test", "outside", "testdata", "app-config.yaml"),
	}, files...)
	args := make([]string, 0, 1+2*len(configs))
	args = append(args, program(tb, "backstage", "portal"))
	for _, f := range configs {
		args = append(args, "--config", f)
	}
	p := &process{
		name: "backstage", args: args, dir: tb.TempDir(), timeout: 10 * time.Minute,
		env: environment(append([]string{"CAPSTAN_PORTAL_PORT=" + port, "CAPSTAN_PORTAL_URL=" + url, "NODE_ENV=development"}, variables...)...),
		ready: func() error {
			client := &http.Client{Timeout: answerTimeout}
			resp, err := client.Get(url + "/.backstage/health/v1/readiness")
			if err != nil {
				return err
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				return fmt.Errorf("it answers %s", resp.Status)
			}
			return nil
		},
	}
	p.start(tb)
	tb.Cleanup(func() {
		p.stop()
		if tb.Failed() {
			tb.Log(p.log())
		}
	})
	return url
}
