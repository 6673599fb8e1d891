// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/engine/postgres"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/test/container"
	"github.com/capstan-dev/capstan/test/outside"
)

const (
	database = "orders"
	password = "the platform's password of a test"
	identity = "3f2a9c1b00000000000000000000abcd"
	scope    = database + "-3f2a9c1b"
)

// A cluster is a Database on a real API server: what the composition makes as objects and files, and what the kubelets make as
// processes.
type cluster struct {
	t       *testing.T
	client  *kubernetes.Clientset
	ns      string
	root    string
	base    string
	logs    string // kept with go test -artifacts
	program string
	api     *gate
	ca      *container.Authority
	server  postgres.Server
	second  postgres.Server // of the second generation, if there is one
	upgrade string          // that the second generation begins with
	net     int             // second number of the addresses
	sub     int             // third number of the addresses
	ipv6    bool            // the one member has the one address of IPv6 that every machine has
	letters []string
	apart   bool              // all pods have a volume for the write-ahead log
	wal     map[string]bool   // members whose pods have one
	json    bool              // logs are lines of JSON
	own     map[string]string // parameters of members, by letter, as JSON
	reaches []string          // lines of /etc/hosts beyond those of members
	cloud   *cloud            // that the pods have a role in, if they have

	mu      sync.Mutex
	members map[string]*container.Running
	events  []leaders
	locks   []locked
}

// locked is who held the leader's lock from a version of the API server's storage on.
type locked struct {
	version int64
	holder  string
}

// leaders is who had the label of the leader from an instant on.
type leaders struct {
	at    time.Time
	names []string
	// got is who got it now, if any, and version that of the change.
	got     string
	version int64
}

// newCluster with the objects that a Database has, and no member yet.
func newCluster(t *testing.T, letters ...string) *cluster {
	t.Helper()
	return newClusterWith(t, letters, func(*cluster) {})
}

// clusters of this run, of which each has addresses of its own.
var clusters int

// newClusterWith something else than usual.
func newClusterWith(t *testing.T, letters []string, adjust func(*cluster)) *cluster {
	t.Helper()
	root := container.Root(t, "postgres")
	cfg := outside.SharedAPIServer(t)
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{
		t: t, client: client, root: root, base: t.TempDir(), logs: t.ArtifactDir(), program: container.Program, members: map[string]*container.Running{},
		letters: letters, wal: map[string]bool{}, apart: os.Getenv("CAPSTAN_TEST_WAL_VOLUMES") != "",
		api: newGate(t, strings.Trim(strings.TrimPrefix(cfg.Host, "https:"), "/")), net: 64 + os.Getpid()%128, sub: clusters,
	}
	t.Cleanup(func() {
		for _, letter := range letters {
			_ = unix.Unmount(filepath.Join(c.base, "wal-"+letter), unix.MNT_DETACH)
		}
	})
	// Containers are another user than the test.
	for dir := c.base; dir != "/" && dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	ns, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "member-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.ns = ns.Name
	if c.ca, err = container.NewAuthority(); err != nil {
		t.Fatal(err)
	}
	c.server = postgres.Server{
		Server: engine.Server{
			Database: database, Scope: scope, Members: int32(len(letters)), Memory: 256 << 20, Storage: 1 << 30, Synchronous: len(letters) > 1,
		},
		Major: 17, MaxConnections: 50, Preload: []string{"pg_stat_statements"},
		Pace: postgres.Pace{TTL: 20, LoopWait: 4, RetryTimeout: 5, SenderTimeout: 5},
	}
	clusters++
	adjust(c)
	c.account(cfg)
	c.shared()
	c.compose()
	for _, l := range letters {
		c.pod(l)
	}
	go c.follow(t.Context())
	go c.followLock(t.Context())
	t.Cleanup(func() {
		for _, l := range c.letters {
			if r := c.running(l); r != nil {
				r.Kill()
			}
		}
	})
	return c
}

// account of the members, with the rights that the platform's manifest gives them.
func (c *cluster) account(cfg *rest.Config) {
	c.t.Helper()
	ctx, client := c.t.Context(), c.client
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "get", "list", "watch", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch", "patch"}},
	}
	name := metav1.ObjectMeta{Name: database + "-members"}
	_, err1 := client.CoreV1().ServiceAccounts(c.ns).Create(ctx, &corev1.ServiceAccount{ObjectMeta: name}, metav1.CreateOptions{})
	_, err2 := client.RbacV1().Roles(c.ns).Create(ctx, &rbacv1.Role{ObjectMeta: name, Rules: rules}, metav1.CreateOptions{})
	_, err3 := client.RbacV1().RoleBindings(c.ns).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: name,
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: name.Name, Namespace: c.ns}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name.Name},
	}, metav1.CreateOptions{})
	// Nothing renews it as a kubelet does, and long series of rounds take hours.
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(24 * 60 * 60))}}
	token, err4 := client.CoreV1().ServiceAccounts(c.ns).CreateToken(ctx, name.Name, request, metav1.CreateOptions{})
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		c.t.Fatal(err)
	}
	c.file("secrets/token", []byte(token.Status.Token))
	c.file("secrets/ca.crt", cfg.CAData)
	c.file("secrets/namespace", []byte(c.ns))
}

// shared files of all members.
func (c *cluster) shared() {
	c.t.Helper()
	file, err := c.server.Patroni()
	if err != nil {
		c.t.Fatal(err)
	}
	verifier, err := scram(password)
	if err != nil {
		c.t.Fatal(err)
	}
	wal, err := c.server.PatroniWAL()
	if err != nil {
		c.t.Fatal(err)
	}
	c.file("config/patroni.yaml", []byte(file))
	c.file("config/patroni-wal.yaml", []byte(wal))
	c.file("config/member.json", []byte(`{"databases": ["shop"], "extensions": ["pg_stat_statements", "hstore"]}`))
	c.file("access/verifier", []byte(verifier+"\n"))
	c.certificate()
}

// certificate of the members, a new one each time.
func (c *cluster) certificate() {
	c.t.Helper()
	names := []string{"localhost", "*." + c.podsHost()}
	for _, s := range []string{"rw", "ro"} {
		names = append(names, fmt.Sprintf("%s-%s.%s.svc", database, s, c.ns))
	}
	cert, key, err := c.ca.Issue(pgmember.MemberCommonName, names)
	if err != nil {
		c.t.Fatal(err)
	}
	c.file("members/tls.key", key)
	c.file("members/tls.crt", cert)
	c.file("members/ca.crt", c.ca.PEM)
}

// file that is mounted.
func (c *cluster) file(name string, content []byte) {
	c.t.Helper()
	path := filepath.Join(c.base, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path+".next", content, 0o644), os.Rename(path+".next", path)); err != nil {
		c.t.Fatal(err)
	}
}

// folder that is mounted, also when it is empty.
func (c *cluster) folder(name string) string {
	c.t.Helper()
	path := filepath.Join(c.base, name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// owned folder, which a member may write to.
func (c *cluster) owned(name string) string {
	c.t.Helper()
	path := c.folder(name)
	if err := os.Chown(path, container.User, container.User); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// logVolume of a member, of its own size: how full the machine's disk is decides nothing.
func (c *cluster) logVolume(letter string) string {
	c.t.Helper()
	path := filepath.Join(c.base, "wal-"+letter)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if err := unix.Mount("tmpfs", c.folder("wal-"+letter), "tmpfs", 0, "size=2g"); err != nil {
		c.t.Fatal(err)
	}
	return c.owned("wal-" + letter)
}

// loseLogVolume of a member that does not run.
func (c *cluster) loseLogVolume(letter string) {
	c.t.Helper()
	path := filepath.Join(c.base, "wal-"+letter)
	if err := errors.Join(unix.Unmount(path, unix.MNT_DETACH), os.RemoveAll(path)); err != nil {
		c.t.Fatal(err)
	}
}

// compose the ConfigMap that is Patroni's configuration.
func (c *cluster) compose() {
	c.t.Helper()
	config, err := c.server.Dynamic()
	if err != nil {
		c.t.Fatal(err)
	}
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"labels":{%q:%q,%q:%q},"annotations":{"config":%q}}}`,
		scope+"-config", v1alpha1.LabelDatabase, database, v1alpha1.LabelScope, scope, config)
	_, err = c.client.CoreV1().ConfigMaps(c.ns).Patch(c.t.Context(), scope+"-config", types.ApplyPatchType, []byte(body),
		metav1.PatchOptions{FieldManager: "composition", Force: new(true)})
	if err != nil {
		c.t.Fatal(err)
	}
}

// pod of a member, as its StatefulSet makes it.
func (c *cluster) pod(letter string) {
	c.t.Helper()
	m := c.identify(letter)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: m.Pod, Labels: map[string]string{
			v1alpha1.LabelDatabase: m.Database, v1alpha1.LabelMember: m.Name, v1alpha1.LabelScope: m.Scope,
		}},
		Spec: corev1.PodSpec{ServiceAccountName: database + "-members", Containers: []corev1.Container{{Name: "postgres", Image: "postgres"}}},
	}
	p, err := c.client.CoreV1().Pods(c.ns).Create(c.t.Context(), p, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: m.IP, PodIPs: []corev1.PodIP{{IP: m.IP}}}
	if _, err := c.client.CoreV1().Pods(c.ns).UpdateStatus(c.t.Context(), p, metav1.UpdateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// identify a member. Those of the second generation have g2- before their letter.
func (c *cluster) identify(letter string) layout.Names {
	name := database + "-" + letter
	if letter, ok := strings.CutPrefix(letter, secondPrefix); ok {
		return layout.Names{
			Pod: name + "-0", Namespace: c.ns, IP: fmt.Sprintf("127.%d.%d.%d", c.net, c.sub, 21+int(letter[0]-'a')), Database: secondDatabase, Name: name,
			Scope: secondScope, Identity: identity, Version: strconv.Itoa(c.second.Major),
		}
	}
	ip := fmt.Sprintf("127.%d.%d.%d", c.net, c.sub, 11+int(letter[0]-'a'))
	if c.ipv6 {
		ip = "::1"
	}
	return layout.Names{
		Pod: name + "-0", Namespace: c.ns, IP: ip, Database: database, Name: name,
		Scope: scope, Identity: identity, Version: strconv.Itoa(c.server.Major),
	}
}

// start a member, with its volume if it has one.
func (c *cluster) start(letter string) *container.Running {
	c.t.Helper()
	m := c.identify(letter)
	mount := func(name string) string { return filepath.Join(c.base, name) }
	data := mount("data-" + letter)
	scratch := filepath.Join(c.base, fmt.Sprintf("scratch-%s-%d", letter, time.Now().UnixNano()))
	if err := errors.Join(os.MkdirAll(data, 0o770), os.Chown(data, container.User, container.User), os.Mkdir(scratch, 0o755)); err != nil {
		c.t.Fatal(err)
	}
	box := container.Spec{
		Run: "postgresql", Root: c.root, Scratch: scratch, Program: c.program, Hosts: c.hosts(), Host: m.Pod, Args: []string{"run"},
		Mounts: map[string]string{
			pgmember.FolderVolume: data, "/etc/capstan/config": mount(configOf(letter)), pgmember.FolderMembers: mount("members"), pgmember.FolderServer: mount("members"),
			"/etc/capstan/access": mount("access"), "/run/secrets/kubernetes.io/serviceaccount": mount("secrets"),
			pgmember.FolderBackup: c.folder("bucket"), pgmember.FolderSource: c.folder("source"), pgmember.FolderSourceRepository: c.folder("source-repository"),
			pgmember.FolderBackupKey: c.folder("backup-key"), pgmember.FolderSourceKey: c.folder("source-key"),
			members.FolderImport: c.folder("import"), folderCloudToken: c.folder("cloud-token"),
		},
	}
	if c.apart || c.wal[letter] {
		box.Mounts[pgmember.FolderWAL] = c.logVolume(letter)
	}
	host, port, _ := net.SplitHostPort(c.api.address)
	env := []string{
		"POD_NAME=" + m.Pod, "POD_NAMESPACE=" + m.Namespace, "POD_IP=" + m.IP, "CAPSTAN_DATABASE=" + m.Database, "CAPSTAN_MEMBER=" + m.Name,
		"CAPSTAN_SCOPE=" + m.Scope, "CAPSTAN_IDENTITY=" + m.Identity, "CAPSTAN_VERSION=" + m.Version,
		"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port, "CAPSTAN_HEALTH_ADDRESS=" + m.Address(pgmember.PortHealth),
		"CAPSTAN_EXPORTER_ADDRESS=" + m.Address(pgmember.PortMetrics),
		// All members have the network of the machine, so each listens to its own address only.
		"PATRONI_POSTGRESQL_LISTEN=" + m.Address(pgmember.PortPostgres), "PATRONI_RESTAPI_LISTEN=" + m.Address(pgmember.PortPatroni),
		// What a member says to itself comes from here, and from its own address elsewhere.
		"PATRONI_RESTAPI_ALLOWLIST=127.0.0.1",
	}
	if c.json {
		env = append(env, "CAPSTAN_LOGS=JSON")
	}
	if own := c.own[letter]; own != "" {
		env = append(env, "CAPSTAN_PARAMETERS="+own)
	}
	env = append(env, c.role()...)
	if c.ipv6 {
		env = slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, "PATRONI_RESTAPI_") })
	}
	r := box.Start(c.t, filepath.Join(c.logs, "log-"+letter), env)
	c.mu.Lock()
	c.members[letter] = r
	c.mu.Unlock()
	return r
}

// podsHost is behind the names of the pods of members, and podHost that of one.
func (c *cluster) podsHost() string { return database + "-pods." + c.ns + ".svc" }

func (c *cluster) podHost(letter string) string { return c.identify(letter).Pod + "." + c.podsHost() }

// hosts file of every container.
func (c *cluster) hosts() string {
	lines := []string{"127.0.0.1 localhost\n"}
	for _, l := range c.letters {
		lines = append(lines, c.identify(l).IP+" "+c.podHost(l)+"\n")
	}
	return strings.Join(append(lines, c.reaches...), "")
}

// running container of a member.
func (c *cluster) running(letter string) *container.Running {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.members[letter]
}

// follow who has the label of the leader: every change of it, in order.
func (c *cluster) follow(ctx context.Context) {
	has := map[string]bool{}
	for ctx.Err() == nil {
		w, err := c.client.CoreV1().Pods(c.ns).Watch(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelMember})
		if err != nil {
			return
		}
		for e := range w.ResultChan() {
			p, ok := e.Object.(*corev1.Pod)
			if !ok {
				break
			}
			// One that has handed over and is stopped keeps the label for the next leader to take.
			leads := p.Labels[v1alpha1.LabelRole] == v1alpha1.RoleLabelLeader && !pods.HandedOver(p.Annotations["status"])
			if leads == has[p.Name] {
				continue
			}
			delete(has, p.Name)
			if leads {
				has[p.Name] = true
			}
			now := leaders{at: time.Now()}
			if leads {
				now.got = p.Name
				now.version, _ = strconv.ParseInt(p.ResourceVersion, 10, 64)
			}
			for n := range has {
				now.names = append(now.names, n)
			}
			c.mu.Lock()
			c.events = append(c.events, now)
			c.mu.Unlock()
		}
		w.Stop()
	}
}

// followLock is who holds the leader's lock: every change of it, in order.
func (c *cluster) followLock(ctx context.Context) {
	for ctx.Err() == nil {
		w, err := c.client.CoreV1().ConfigMaps(c.ns).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + scope + "-leader"})
		if err != nil {
			return
		}
		for e := range w.ResultChan() {
			cm, ok := e.Object.(*corev1.ConfigMap)
			if !ok {
				break
			}
			version, _ := strconv.ParseInt(cm.ResourceVersion, 10, 64)
			c.mu.Lock()
			c.locks = append(c.locks, locked{version, cm.Annotations["leader"]})
			c.mu.Unlock()
		}
		w.Stop()
	}
}

// holderAt a version of the API server's storage, in which all objects of a test are: who held the leader's lock.
func (c *cluster) holderAt(version int64) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	holder := ""
	for _, l := range c.locks {
		if l.version <= version {
			holder = l.holder
		}
	}
	return holder
}

// holder of the leader's lock, as it was seen last.
func (c *cluster) holder() string { return c.holderAt(math.MaxInt64) }

// labelFollowsLock: whoever gets the label of the leader holds the lock at that moment, or loses the label at once.
func (c *cluster) labelFollowsLock() {
	c.t.Helper()
	time.Sleep(time.Second)
	c.mu.Lock()
	events := slices.Clone(c.events)
	c.mu.Unlock()
	for i, e := range events {
		if e.got == "" {
			continue
		}
		holder := c.holderAt(e.version)
		if holder == e.got {
			continue
		}
		until := time.Now()
		for _, later := range events[i+1:] {
			if !slices.Contains(later.names, e.got) {
				until = later.at
				break
			}
		}
		c.t.Logf("%s got the label of the leader while %q held the lock, for %s", e.got, holder, until.Sub(e.at))
		if until.Sub(e.at) > 500*time.Millisecond {
			c.t.Errorf("%s had the label of the leader for %s while %q held the lock", e.got, until.Sub(e.at), holder)
		}
	}
}

// leader by the label: the letter, or nothing.
func (c *cluster) leader() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.events) == 0 {
		return ""
	}
	now := c.events[len(c.events)-1]
	if len(now.names) != 1 {
		return ""
	}
	return strings.TrimSuffix(strings.TrimPrefix(now.names[0], database+"-"), "-0")
}

// oneLeader fails the test if two pods had the label of the leader at any time, but for one that said that it was stopped.
func (c *cluster) oneLeader() {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.events {
		if len(e.names) > 1 {
			c.t.Errorf("%v had the label of the leader at a time", e.names)
		}
	}
}

// onePromotion fails the test if two members were promoted to the same timeline: both had the leader's lock.
func (c *cluster) onePromotion() {
	c.t.Helper()
	promoted := map[string]string{}
	for _, l := range c.letters {
		raw, err := os.ReadFile(filepath.Join(c.logs, "log-"+l))
		if err != nil {
			c.t.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			_, timeline, ok := strings.Cut(strings.TrimSpace(line), "selected new timeline ID: ")
			if !ok {
				continue
			}
			if other := promoted[timeline]; other != "" {
				c.t.Errorf("%s and %s were promoted to timeline %s", other, l, timeline)
			}
			promoted[timeline] = l
		}
	}
	if len(promoted) == 0 {
		c.t.Error("no promotion is known: the test looks for the wrong words")
	}
}

// probe a member as a kubelet does.
func (c *cluster) probe(letter, path string) error {
	return probed(c.identify(letter).Address(pgmember.PortHealth), path)
}

// probed address, as the kubelet does it.
func probed(address, path string) error {
	client := http.Client{Timeout: 2 * time.Second}
	resp, err := client.Get("http://" + address + path)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		raw := make([]byte, 300)
		n, _ := resp.Body.Read(raw)
		return fmt.Errorf("%s: %s", resp.Status, raw[:n])
	}
	return nil
}

// connect to a member as the platform does.
func (c *cluster) connect(ctx context.Context, letter, db string) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig("postgres://capstan@" + c.identify(letter).Address(pgmember.PortPostgres) + "/" + db + "?sslmode=require&password=" + url.QueryEscape(password))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(c.ca.PEM)
	cfg.TLSConfig = &tls.Config{RootCAs: pool, ServerName: database + "-rw." + c.ns + ".svc", MinVersion: tls.VersionTLS12}
	return pgx.ConnectConfig(ctx, cfg)
}

// report of a member.
func (c *cluster) pods() map[string]*corev1.Pod {
	c.t.Helper()
	list, err := c.client.CoreV1().Pods(c.ns).List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	out := map[string]*corev1.Pod{}
	for i := range list.Items {
		p := &list.Items[i]
		out[strings.TrimSuffix(strings.TrimPrefix(p.Name, database+"-"), "-0")] = p
	}
	return out
}

// eventually something holds.
func (c *cluster) eventually(what string, within time.Duration, holds func() bool) time.Duration {
	c.t.Helper()
	begun := time.Now()
	for !holds() {
		if time.Since(begun) > within {
			for _, l := range c.letters {
				raw, _ := os.ReadFile(filepath.Join(c.logs, "log-"+l))
				c.t.Logf("log of %s:\n%s", l, raw[max(0, len(raw)-8000):])
			}
			for _, l := range c.letters {
				c.t.Log(l, c.probe(l, "/readyz"))
				if r := c.running(l); r != nil { // The title of a process says what it does, as in "startup recovering".
					out, _ := r.Enter("sh", "-c", `for p in /proc/[0-9]*; do echo "${p#/proc/} $(tr '\0' ' ' <$p/cmdline) ($(cat $p/wchan))"; done`)
					c.t.Log(out)
				}
			}
			c.t.Fatalf("not within %s: %s", within, what)
		}
		time.Sleep(50 * time.Millisecond)
	}
	return time.Since(begun).Round(10 * time.Millisecond)
}

// ready members by their probes.
func (c *cluster) ready(letters ...string) bool {
	for _, l := range letters {
		if c.probe(l, "/readyz") != nil {
			return false
		}
	}
	return c.leader() != ""
}

// scram verifier of a password (RFC 5803).
func scram(password string) (string, error) {
	salt := make([]byte, 16)
	_, _ = rand.Read(salt)
	salted, err := pbkdf2.Key(sha256.New, password, salt, 4096, sha256.Size)
	if err != nil {
		return "", err
	}
	mac := func(text string) []byte {
		h := hmac.New(sha256.New, salted)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	stored := sha256.Sum256(mac("Client Key"))
	b := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$4096:%s$%s:%s", b(salt), b(stored[:]), b(mac("Server Key"))), nil
}
