// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"golang.org/x/sys/unix"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/test/container"
	"github.com/capstan-dev/capstan/test/outside"
)

const (
	database = "orders"
	password = "the platform's password of a test"
	identity = "3f2a9c1b00000000000000000000abcd"
	scope    = database + "-3f2a9c1b"
)

// A cluster is a Database on a real API server: what the composition makes as objects and files, and what the kubelets make as processes.
type cluster struct {
	t       *testing.T
	client  *kubernetes.Clientset
	ns      string
	root    string
	base    string
	logs    string // kept with go test -artifacts
	api     string
	ca      *container.Authority
	net     int // second number of the addresses
	sub     int // third number of the addresses
	letters []string
	dynamic map[string]string
	config  mysqlmember.Config
	bucket  *store // nil without backups in a bucket

	named map[string]string // addresses of other hosts, by name
	dns   string            // address of the cluster's DNS
	hosts []string          // lines of /etc/hosts in all members

	apiDown, dnsDown atomic.Bool
	cutOff           sync.Map // letters of members that do not reach the API server

	mu        sync.Mutex
	forwarded []net.Conn
	members   map[string]*container.Running
	events    []leaders
}

// leaders is who had the label of the leader from an instant on.
type leaders struct {
	at    time.Time
	names []string
}

// clusters of this run, of which each has addresses of its own.
var clusters int

// newCluster with the objects that a Database has, and no member yet.
func newCluster(t *testing.T, letters ...string) *cluster {
	t.Helper()
	root := container.Root(t, "mysql")
	cfg := outside.SharedAPIServer(t)
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{
		t: t, client: client, root: root, base: t.TempDir(), logs: t.ArtifactDir(), members: map[string]*container.Running{}, letters: letters,
		api: strings.Trim(strings.TrimPrefix(cfg.Host, "https:"), "/"), net: 64 + os.Getpid()%128, sub: clusters,
	}
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
	clusters++
	c.config = mysqlmember.Config{Generation: 1, Domain: c.podsHost(), Volumes: &[]string{}}
	c.account(cfg)
	c.shared()
	c.compose()
	c.bridge()
	for _, l := range letters {
		c.network(l)
		c.pod(l)
	}
	go c.follow(t.Context())
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

// settings that are the same for all members.
const settings = `[mysqld]
port=3306
admin_port=33062
create_admin_listener_thread=ON
require_secure_transport=ON
tls_version=TLSv1.2,TLSv1.3
skip_name_resolve=ON
mysqlx=OFF
local_infile=OFF
secure_file_priv=NULL
persisted_globals_load=OFF
super_read_only=ON
partial_revokes=ON
lower_case_table_names=0
disabled_storage_engines=MyISAM,BLACKHOLE,FEDERATED,ARCHIVE,MEMORY
sql_require_primary_key=ON
sync_binlog=1
innodb_flush_log_at_trx_commit=1
relay_log_recovery=OFF
gtid_mode=ON
enforce_gtid_consistency=ON
log_bin=binlog
relay_log=relay
log_replica_updates=ON
skip_replica_start=ON
replica_parallel_workers=4
replica_preserve_commit_order=ON
innodb_dedicated_server=OFF
innodb_buffer_pool_size=134217728
innodb_redo_log_capacity=134217728
innodb_log_buffer_size=8388608
performance_schema_max_table_instances=500
performance_schema_max_thread_instances=200
table_open_cache=400
table_definition_cache=400
max_connections=100
wait_timeout=3600
group_replication_message_cache_size=134217728
group_replication_communication_stack=MYSQL
group_replication_start_on_boot=OFF
group_replication_bootstrap_group=OFF
group_replication_single_primary_mode=ON
group_replication_enforce_update_everywhere_checks=OFF
group_replication_paxos_single_leader=ON
group_replication_consistency=BEFORE_ON_PRIMARY_FAILOVER
group_replication_exit_state_action=OFFLINE_MODE
group_replication_autorejoin_tries=3
group_replication_member_expel_timeout=0
group_replication_unreachable_majority_timeout=10
group_replication_recovery_use_ssl=ON
group_replication_recovery_ssl_verify_server_cert=ON
`

// shared files of all members.
func (c *cluster) shared() {
	c.t.Helper()
	c.file("config/"+mysqlmember.FileServer, []byte(settings))
	c.configure()
	c.file("access/verifier", []byte(verifier(password)))
	c.certificate()
}

// configure the members.
func (c *cluster) configure() {
	c.t.Helper()
	raw, err := json.Marshal(c.config)
	if err != nil {
		c.t.Fatal(err)
	}
	c.file("config/"+mysqlmember.FileConfig, raw)
}

// certificate of the members, a new one each time.
func (c *cluster) certificate() {
	c.t.Helper()
	names := []string{"localhost", "*." + c.podsHost()}
	for _, s := range []string{"rw", "ro"} {
		names = append(names, fmt.Sprintf("%s-%s.%s.svc", database, s, c.ns))
	}
	cert, key, err := c.ca.Issue(mysqlmember.MemberCommonName, names)
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

// folder that is mounted, which is empty unless there are files in it.
func (c *cluster) folder(name string) string {
	c.t.Helper()
	path := filepath.Join(c.base, name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// compose the ConfigMap that members follow.
func (c *cluster) compose() {
	c.t.Helper()
	config, err := json.Marshal(mysqlmember.Dynamic{Parameters: c.dynamic})
	if err != nil {
		c.t.Fatal(err)
	}
	c.annotate(members.SuffixConfig, "composition", map[string]string{members.AnnotationConfig: string(config)})
}

// annotate a ConfigMap of the scope.
func (c *cluster) annotate(suffix, manager string, annotations map[string]string) {
	c.t.Helper()
	body, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
		"name": scope + "-" + suffix, "labels": map[string]string{members.LabelDatabase: database, members.LabelScope: scope}, "annotations": annotations,
	}})
	if err != nil {
		c.t.Fatal(err)
	}
	_, err = c.client.CoreV1().ConfigMaps(c.ns).Patch(c.t.Context(), scope+"-"+suffix, types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: manager, Force: new(true)})
	if err != nil {
		c.t.Fatal(err)
	}
}

// annotations of a ConfigMap of the scope.
func (c *cluster) annotations(suffix string) map[string]string {
	cm, err := c.client.CoreV1().ConfigMaps(c.ns).Get(c.t.Context(), scope+"-"+suffix, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return cm.Annotations
}

// pod of a member, as its StatefulSet makes it.
func (c *cluster) pod(letter string) {
	c.t.Helper()
	m := c.identify(letter)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: m.Pod, Labels: map[string]string{
			members.LabelDatabase: m.Database, members.LabelMember: m.Name, members.LabelScope: m.Scope,
		}},
		Spec: corev1.PodSpec{ServiceAccountName: database + "-members", Containers: []corev1.Container{{Name: "mysql", Image: "mysql"}}},
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

// identify a member.
func (c *cluster) identify(letter string) layout.Names {
	name := database + "-" + letter
	return layout.Names{
		Pod: name + "-0", Namespace: c.ns, IP: fmt.Sprintf("10.%d.%d.%d", c.net, c.sub, 11+int(letter[0]-'a')), Database: database, Name: name,
		Scope: scope, Identity: identity, Version: "9.7",
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
		Run: "mysqld", Root: c.root, Scratch: scratch, Network: c.netns(letter), Program: container.Program, DNS: c.dns,
		Hosts: hostsOf(append([]string{m.IP + " " + m.Pod + "." + c.podsHost()}, c.hosts...)...), Host: m.Pod, Args: []string{"run"},
		Mounts: map[string]string{
			mysqlmember.FolderVolume: data, mysqlmember.FolderConfig: mount("config"), mysqlmember.FolderMembers: mount("members"),
			mysqlmember.FolderServer: mount("members"), mysqlmember.FolderAccess: mount("access"), "/run/secrets/kubernetes.io/serviceaccount": mount("secrets"),
			mysqlmember.FolderSource: c.folder("source"), mysqlmember.FolderSourceKey: c.folder("source-key"), members.FolderImport: c.folder("import"),
			mysqlmember.FolderSourceRepository: c.folder("source-repository"),
		},
	}
	if c.config.Backup != nil {
		box.Mounts[mysqlmember.FolderBackup], box.Mounts[mysqlmember.FolderBackupKey] = mount("backup"), mount("backup-key")
	}
	host, port, _ := net.SplitHostPort(c.api) // see network
	env := []string{
		"POD_NAME=" + m.Pod, "POD_NAMESPACE=" + m.Namespace, "POD_IP=" + m.IP, "CAPSTAN_DATABASE=" + m.Database, "CAPSTAN_MEMBER=" + m.Name,
		"CAPSTAN_SCOPE=" + m.Scope, "CAPSTAN_IDENTITY=" + m.Identity, "CAPSTAN_VERSION=" + m.Version,
		"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port,
	}
	r := box.Start(c.t, filepath.Join(c.logs, "log-"+letter), env)
	c.mu.Lock()
	c.members[letter] = r
	c.mu.Unlock()
	return r
}

// volume of a member that has not started yet, of a size in MiB. Others have as much room as the machine.
func (c *cluster) volume(letter string, size int) {
	c.t.Helper()
	data := filepath.Join(c.base, "data-"+letter)
	if err := errors.Join(os.MkdirAll(data, 0o770), unix.Mount("tmpfs", data, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=0770,uid=%d,gid=%d", size, container.User, container.User))); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = unix.Unmount(data, unix.MNT_DETACH) })
}

// podsHost is behind the names of the pods of members.
func (c *cluster) podsHost() string { return database + "-pods." + c.ns + ".svc" }

// hostsOf a container, as a kubelet writes them: others are found by the DNS.
func hostsOf(own ...string) string {
	return strings.Join(append([]string{"127.0.0.1 localhost"}, own...), "\n") + "\n"
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
		w, err := c.client.CoreV1().Pods(c.ns).Watch(ctx, metav1.ListOptions{LabelSelector: members.LabelMember})
		if err != nil {
			return
		}
		for e := range w.ResultChan() {
			p, ok := e.Object.(*corev1.Pod)
			if !ok {
				break
			}
			leads := p.Labels[members.LabelRole] == members.RoleLeader
			if leads == has[p.Name] {
				continue
			}
			delete(has, p.Name)
			if leads {
				has[p.Name] = true
			}
			now := leaders{at: time.Now()}
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

// oneLeader fails the test if two pods had the label of the leader at any time.
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

// follower that is not the leader.
func (c *cluster) followers() []string {
	var out []string
	for _, l := range c.letters {
		if l != c.leader() {
			out = append(out, l)
		}
	}
	return out
}

// probe a member as a kubelet does.
func (c *cluster) probe(letter, path string) error {
	client := http.Client{Timeout: 2 * time.Second}
	resp, err := client.Get("http://" + c.identify(letter).IP + ":" + strconv.Itoa(mysqlmember.PortHealth) + path)
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

// consumer that the platform makes.
const consumer = "api"

// connect to a member as the platform does, or as a consumer, who have the same password here.
func (c *cluster) connect(letter, account, db string) *sql.DB {
	c.t.Helper()
	cfg := driver.NewConfig()
	cfg.User, cfg.Passwd, cfg.Net, cfg.DBName = account, password, "tcp", db
	cfg.Addr = c.identify(letter).IP + ":" + strconv.Itoa(mysqlmember.PortMySQL)
	cfg.Timeout, cfg.ReadTimeout, cfg.WriteTimeout, cfg.Logger = 2*time.Second, patience, patience, &driver.NopLogger{}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(c.ca.PEM)
	cfg.TLS = &tls.Config{RootCAs: pool, ServerName: database + "-rw." + c.ns + ".svc", MinVersion: tls.VersionTLS12}
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	db2 := sql.OpenDB(connector)
	db2.SetMaxIdleConns(1)
	return db2
}

// inside a container, ask the server as its own user does.
func (c *cluster) inside(letter, query string) string {
	out, err := c.running(letter).Enter("/usr/bin/mysql", "--no-defaults", "-S", mysqlmember.FileSocket, "-u"+mysqlmember.AccountMember, "-N", "-B", "-e", query)
	if err != nil {
		return fmt.Sprintf("%v: %s", err, out)
	}
	return strings.TrimSpace(out)
}

// status that a member tells.
func (c *cluster) status(letter string) (s members.Status, r members.Report, role string) {
	p, err := c.client.CoreV1().Pods(c.ns).Get(c.t.Context(), c.identify(letter).Pod, metav1.GetOptions{})
	if err != nil {
		return s, r, ""
	}
	_ = json.Unmarshal([]byte(p.Annotations[members.AnnotationStatus]), &s)
	_ = json.Unmarshal([]byte(p.Annotations[members.AnnotationReport]), &r)
	return s, r, p.Labels[members.LabelRole]
}

// eventually something holds.
func (c *cluster) eventually(what string, within time.Duration, holds func() bool) time.Duration {
	c.t.Helper()
	begun := time.Now()
	for !holds() {
		if time.Since(begun) > within {
			for _, l := range c.letters {
				raw, _ := os.ReadFile(filepath.Join(c.logs, "log-"+l))
				c.t.Logf("log of %s:\n%s", l, raw[max(0, len(raw)-4000):])
			}
			for _, l := range c.letters {
				s, r, role := c.status(l)
				c.t.Log(l, c.probe(l, "/readyz"), s, r, role)
			}
			c.t.Log(c.annotations(members.SuffixLeader))
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

// verifier of a password for caching_sha2_password: SHA-256-crypt of 5000 rounds, with 20 characters of salt.
func verifier(password string) string {
	const alphabet = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	salt := make([]byte, 20)
	_, _ = rand.Read(salt)
	for i := range salt {
		salt[i] = alphabet[salt[i]%64]
	}
	p := []byte(password)
	sum := func(parts ...[]byte) []byte {
		h := sha256.New()
		for _, b := range parts {
			h.Write(b)
		}
		return h.Sum(nil)
	}
	stretch := func(b []byte, n int) []byte {
		var out []byte
		for len(out) < n {
			out = append(out, b...)
		}
		return out[:n]
	}
	b := sum(p, salt, p)
	a := [][]byte{p, salt, stretch(b, len(p))}
	for n := len(p); n > 0; n >>= 1 {
		if n&1 == 1 {
			a = append(a, b)
		} else {
			a = append(a, p)
		}
	}
	digest := sum(a...)
	var dp, ds [][]byte
	for range p {
		dp = append(dp, p)
	}
	for range 16 + int(digest[0]) {
		ds = append(ds, salt)
	}
	pp, ss := stretch(sum(dp...), len(p)), stretch(sum(ds...), len(salt))
	for i := range 5000 {
		var c [][]byte
		if i&1 == 1 {
			c = append(c, pp)
		} else {
			c = append(c, digest)
		}
		if i%3 != 0 {
			c = append(c, ss)
		}
		if i%7 != 0 {
			c = append(c, pp)
		}
		if i&1 == 1 {
			c = append(c, digest)
		} else {
			c = append(c, pp)
		}
		digest = sum(c...)
	}
	var out []byte
	put := func(x, y, z byte, n int) {
		for w := uint(x)<<16 | uint(y)<<8 | uint(z); n > 0; n-- {
			out = append(out, alphabet[w&63])
			w >>= 6
		}
	}
	for i := range 10 {
		order := [3]int{i, i + 10, i + 20}
		put(digest[order[i*2%3]], digest[order[(i*2+1)%3]], digest[order[(i*2+2)%3]], 4)
	}
	put(0, digest[31], digest[30], 3)
	return "$A$005$" + string(salt) + string(out)
}
