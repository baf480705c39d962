"""Writes a database in the form of Nsight Systems with three steps of eight kernels and a copy: python3 make.py nsight.sqlite. Its pages are small, so that tables have several and a text goes on over more."""
import sqlite3, os, sys
p=sys.argv[1]
if os.path.exists(p): os.remove(p)
d=sqlite3.connect(p)
d.execute("PRAGMA page_size=512")
d.execute("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)")
d.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT NOT NULL, end INT NOT NULL, eventClass INT NOT NULL, globalTid INT, correlationId INT, nameId INT NOT NULL REFERENCES StringIds(id), returnValue INT NOT NULL)")
d.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL, contextId INT NOT NULL, streamId INT NOT NULL, correlationId INT, globalPid INT, demangledName INT NOT NULL, shortName INT NOT NULL)")
d.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL, contextId INT, streamId INT, correlationId INT, bytes INT NOT NULL, copyKind INT NOT NULL)")
d.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INT, end INT)")
d.execute("CREATE TABLE NVTX_EVENTS (start INT NOT NULL, end INT, eventType INT NOT NULL, text TEXT, textId INT, globalTid INT)")
d.execute("CREATE TABLE TARGET_INFO_GPU (id INTEGER PRIMARY KEY, name TEXT, totalMemory INT)")
names={1:'cudaLaunchKernel_v7000',2:'cudaMemcpyAsync_v3020',3:'cudaDeviceSynchronize_v3020',4:'gemm<float, '+'x'*700+'>',5:'gemm'}
d.executemany("INSERT INTO StringIds VALUES (?,?)",names.items())
tid=(77<<24)|5
t=10**9; corr=1
for step in range(3):
    d.execute("INSERT INTO NVTX_EVENTS VALUES (?,?,59,?,NULL,?)",(t,t+100000,f'ProfilerStep#{step}',tid))
    d.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,0,?,?,2,0)",(t+1000,t+3000,tid,corr))
    d.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?,?,0,1,7,?,4096,1)",(t+4000,t+9000,corr)); corr+=1
    for k in range(8):
        d.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,0,?,?,1,0)",(t+10000+k*3000,t+12000+k*3000,tid,corr))
        d.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,0,1,7,?,0,4,5)",(t+13000+k*9000,t+21000+k*9000,corr)); corr+=1
    d.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,0,?,?,3,0)",(t+40000,t+95000,tid,corr)); corr+=1
    d.execute("INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (?,?)",(t+40000,t+95000))
    t+=100000
d.execute("INSERT INTO TARGET_INFO_GPU VALUES (0,'NVIDIA A100-SXM4-40GB',42000000000)")
d.commit(); d.close()
