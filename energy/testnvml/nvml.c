/*
 * A build of libnvidia-ml.so.1 for tests without a GPU: what package energy calls,
 * over boards whose power follows a script.
 *
 * TESTNVML holds the script, "key=value" separated by commas:
 *
 *   devices=1   boards; each draws its index times 10 W more than the first
 *   watts=100   power at time 0 ...
 *   ramp=0      ... and how much it rises per second
 *   counter=1   what the energy counter shows for one joule drawn
 *   instant=1   0: the board has no field of the instant power
 *   energy=1    0: the board has no counter of energy
 *   power=1     0: the board tells no power at all
 *   root=1      0: clocks may not be locked
 *   denied=-1   the board that may not be opened
 *
 * TESTNVML_NOW is the time in microseconds; without it the time since nvmlInit runs.
 * The power is exact at every moment; the counter shows what was drawn up to the last
 * multiple of 100 ms, in whole millijoules, rounded down.
 *
 * Both are read at every call, so that a test moves time by setting a variable.
 * Compile with the header nvml.h of go-nvml: it holds the types.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nvml.h"

enum { MAX_BOARDS = 16 };

static struct timespec begun;

/* To what the clock of each board is locked, in MHz; 0: it is not. */
static unsigned locked[MAX_BOARDS];

/* script is the value of a key of TESTNVML. */
static double script(const char *key, double otherwise) {
	const char *at = getenv("TESTNVML");
	size_t n = strlen(key);
	while (at && *at) {
		if (!strncmp(at, key, n) && at[n] == '=') return atof(at + n + 1);
		at = strchr(at, ',');
		if (at) at++;
	}
	return otherwise;
}

static double seconds(void) {
	const char *fixed = getenv("TESTNVML_NOW");
	struct timespec t;
	if (fixed) return atof(fixed) * 1e-6;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)(t.tv_sec - begun.tv_sec) + 1e-9 * (double)(t.tv_nsec - begun.tv_nsec);
}

/* A handle is the board's index plus one. */
static int board(nvmlDevice_t d) { return (int)(size_t)d.handle - 1; }

static double base_watts(nvmlDevice_t d) { return script("watts", 100) + 10 * board(d); }

static double watts(nvmlDevice_t d) { return base_watts(d) + script("ramp", 0) * seconds(); }

static unsigned milli(double v) { return (unsigned)floor(1e3 * v + 0.5); }

nvmlReturn_t nvmlInit_v2(void) {
	clock_gettime(CLOCK_MONOTONIC, &begun);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlInit(void) { return nvmlInit_v2(); }

nvmlReturn_t nvmlShutdown(void) { return NVML_SUCCESS; }

const char *nvmlErrorString(nvmlReturn_t r) {
	switch (r) {
	case NVML_SUCCESS: return "Success";
	case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
	case NVML_ERROR_INVALID_ARGUMENT: return "Invalid Argument";
	case NVML_ERROR_NOT_FOUND: return "Not Found";
	default: return "Unknown Error";
	}
}

static nvmlReturn_t put(char *to, unsigned length, const char *text) {
	if (strlen(text) >= length) return NVML_ERROR_INSUFFICIENT_SIZE;
	strcpy(to, text);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length) { return put(version, length, "testnvml 1"); }

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *n) {
	*n = (unsigned)script("devices", 1);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned i, nvmlDevice_t *d) {
	if (i >= MAX_BOARDS || i >= (unsigned)script("devices", 1)) return NVML_ERROR_INVALID_ARGUMENT;
	if ((int)i == (int)script("denied", -1)) return NVML_ERROR_NO_PERMISSION;
	d->handle = (struct nvmlDevice_st *)(size_t)(i + 1);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t d, char *name, unsigned length) {
	(void)d;
	return put(name, length, "Test GPU");
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t d, char *uuid, unsigned length) {
	char text[48];
	snprintf(text, sizeof text, "GPU-00000000-0000-0000-0000-%012d", board(d));
	return put(uuid, length, text);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *d) {
	for (unsigned i = 0; nvmlDeviceGetHandleByIndex_v2(i, d) == NVML_SUCCESS; i++) {
		char name[48];
		if (nvmlDeviceGetUUID(*d, name, sizeof name) == NVML_SUCCESS && !strcmp(uuid, name)) return NVML_SUCCESS;
	}
	return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t d, nvmlPciInfo_t *pci) {
	memset(pci, 0, sizeof *pci);
	pci->domain = 0;
	pci->bus = 1 + (unsigned)board(d); /* as the test build of the CUDA driver has it */
	snprintf(pci->busId, sizeof pci->busId, "00000000:%02X:00.0", pci->bus);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t d, unsigned long long *mj) {
	/* Time is in whole microseconds where it is fixed, so that 0.3 s are three updates. */
	double t = floor((seconds() + 0.5e-6) / 0.1) * 0.1;
	if (script("energy", 1) == 0) return NVML_ERROR_NOT_SUPPORTED;
	*mj = (unsigned long long)floor(1e3 * script("counter", 1) * (base_watts(d) * t + script("ramp", 0) * t * t / 2) + 1e-6);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t d, unsigned *mw) {
	if (script("power", 1) == 0) return NVML_ERROR_NOT_SUPPORTED;
	*mw = milli(watts(d));
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t d, int n, nvmlFieldValue_t *v) {
	for (int i = 0; i < n; i++) {
		v[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
		if (v[i].fieldId != NVML_FI_DEV_POWER_INSTANT || script("instant", 1) == 0 || script("power", 1) == 0) continue;
		v[i].nvmlReturn = NVML_SUCCESS;
		v[i].valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
		v[i].value.uiVal = milli(watts(d));
	}
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t d, nvmlClockType_t type, unsigned *mhz) {
	*mhz = type == NVML_CLOCK_MEM ? 2619 : locked[board(d)] ? locked[board(d)] : 1755;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMinMaxClockOfPState(nvmlDevice_t d, nvmlClockType_t type, nvmlPstates_t state, unsigned *least, unsigned *most) {
	(void)d;
	if (type != NVML_CLOCK_GRAPHICS || state != NVML_PSTATE_0) return NVML_ERROR_INVALID_ARGUMENT;
	*least = 345;
	*most = 1980;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceSetGpuLockedClocks(nvmlDevice_t d, unsigned least, unsigned most) {
	if (script("root", 1) == 0) return NVML_ERROR_NO_PERMISSION;
	if (least != most) return NVML_ERROR_INVALID_ARGUMENT;
	locked[board(d)] = most;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceResetGpuLockedClocks(nvmlDevice_t d) {
	if (script("root", 1) == 0) return NVML_ERROR_NO_PERMISSION;
	locked[board(d)] = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t d, nvmlClockType_t type, unsigned *mhz) {
	(void)d;
	*mhz = type == NVML_CLOCK_MEM ? 2619 : 1980;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t d, unsigned *mw) {
	(void)d;
	*mw = 700000;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t d, nvmlTemperatureSensors_t sensor, unsigned *celsius) {
	(void)sensor;
	*celsius = 41 + (unsigned)board(d);
	return NVML_SUCCESS;
}
