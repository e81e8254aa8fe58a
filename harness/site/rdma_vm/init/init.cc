// The first program of a laboratory's guest (docs/rdma_lab.md): loads the modules that came with
// it, puts the machine's own root file system under a layer in memory, and becomes the agent, which
// is the program that started the laboratory. Linked statically, because there is nothing else yet;
// everything it cannot do ends the guest, with a line on the console that says why.
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <initializer_list>

namespace {

constexpr const char* kConsole = "/dev/ttyS0";
constexpr const char* kConfiguration =
    "/config";                                // the agent's path; the shared folder's, or empty
constexpr const char* kModules = "/modules";  // paths, in the order in which they are loaded
constexpr const char* kRoot = "/root";

[[noreturn]] void giveUp(const char* what, const char* on) {
  std::printf("faultline-init: %s %s: %s\n", what, on, std::strerror(errno));
  std::fflush(stdout);
  ::sync();
  ::reboot(RB_POWER_OFF);
  ::_exit(1);
}

void mountOn(const char* source, const char* target, const char* type, unsigned long flags = 0,
             const char* options = nullptr) {
  if (::mount(source, target, type, flags, options) != 0) giveUp("mount", target);
}

void makeFolder(const char* path) {
  if (::mkdir(path, 0755) != 0 && errno != EEXIST) giveUp("make folder", path);
}

/// All of the path.
void makeFoldersOf(const char* path) {
  char made[PATH_MAX];
  std::snprintf(made, sizeof made, "%s", path);
  for (char* at = made + 1; *at != '\0'; ++at) {
    if (*at != '/') continue;
    *at = '\0';
    makeFolder(made);
    *at = '/';
  }
  makeFolder(made);
}

bool nextLine(std::FILE* file, char* line, int size) {
  if (std::fgets(line, size, file) == nullptr) return false;
  line[std::strcspn(line, "\n")] = '\0';
  return true;
}

void loadModules() {
  std::FILE* const list = std::fopen(kModules, "re");
  if (list == nullptr) giveUp("open", kModules);
  char path[PATH_MAX];
  while (nextLine(list, path, sizeof path)) {
    const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) giveUp("open", path);
    if (::syscall(SYS_finit_module, fd, "", 0) != 0 && errno != EEXIST) giveUp("load", path);
    ::close(fd);
  }
  std::fclose(list);
}

void openConsole() {
  const int console = ::open(kConsole, O_RDWR | O_NOCTTY);
  if (console < 0) return;  // nobody to tell
  for (int fd = 0; fd <= 2; ++fd) ::dup2(console, fd);
  if (console > 2) ::close(console);
}

/// The machine's files below, what the guest writes above.
void mountRoot() {
  mountOn("faultline_root", "/lower", "9p", MS_RDONLY,
          "trans=virtio,version=9p2000.L,msize=262144,cache=loose");
  mountOn("tmpfs", "/upper", "tmpfs");
  makeFolder("/upper/files");
  makeFolder("/upper/work");
  mountOn("overlay", kRoot, "overlay", 0,
          "lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work");
}

/// libibverbs loads the libraries of all providers that it finds here, before it knows whose a
/// device is. A guest has devices of rxe alone, and emulation takes its time to load the others.
void nameOneProvider() {
  constexpr const char* kProviders = "/root/etc/libibverbs.d";
  if (::access(kProviders, F_OK) != 0) return;
  mountOn("tmpfs", kProviders, "tmpfs");
  std::FILE* const file = std::fopen("/root/etc/libibverbs.d/rxe.driver", "we");
  if (file == nullptr) giveUp("write into", kProviders);
  std::fputs("driver rxe\n", file);
  std::fclose(file);
}

void moveIntoRoot() {
  mountOn("proc", "/root/proc", "proc");
  mountOn("sysfs", "/root/sys", "sysfs");
  mountOn("devtmpfs", "/root/dev", "devtmpfs");
  mountOn("tmpfs", "/root/run", "tmpfs");
  makeFolder("/root/dev/shm");
  makeFolder("/root/dev/pts");
  mountOn("tmpfs", "/root/dev/shm", "tmpfs");
  mountOn("devpts", "/root/dev/pts", "devpts");
  if (::chdir(kRoot) != 0 || ::mount(".", "/", nullptr, MS_MOVE, nullptr) != 0 ||
      ::chroot(".") != 0 || ::chdir("/") != 0) {
    giveUp("change to", kRoot);
  }
}

/// In the new root, and last: it may be in one of the folders that have just been made.
void mountShared(const char* shared) {
  if (*shared == '\0') return;
  makeFoldersOf(shared);
  // Not cached: the other side reads along.
  mountOn("faultline_shared", shared, "9p", 0,
          "trans=virtio,version=9p2000.L,msize=262144,cache=none,access=any");
}

}  // namespace

int main() {
  for (const char* const folder : {"/proc", "/dev", "/lower", "/upper", kRoot}) makeFolder(folder);
  mountOn("devtmpfs", "/dev", "devtmpfs");
  openConsole();
  char agent[PATH_MAX] = "";
  char shared[PATH_MAX] = "";
  std::FILE* const configuration = std::fopen(kConfiguration, "re");
  if (configuration == nullptr || !nextLine(configuration, agent, sizeof agent)) {
    giveUp("read", kConfiguration);
  }
  nextLine(configuration, shared, sizeof shared);
  std::fclose(configuration);
  loadModules();
  mountRoot();
  nameOneProvider();
  moveIntoRoot();
  mountShared(shared);
  const rlimit unlimited{RLIM_INFINITY, RLIM_INFINITY};
  ::setrlimit(RLIMIT_MEMLOCK, &unlimited);  // memory of verbs is locked
  char name[] = "faultline";
  char verb[] = "guest-agent";
  char* arguments[] = {name, verb, nullptr};
  char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  char home[] = "HOME=/root";
  char language[] = "LANG=C.UTF-8";
  char* environment[] = {path, home, language, nullptr};
  ::execve(agent, arguments, environment);
  giveUp("execute", agent);
}
